"""Types shared by all assignors, and the subscribers of each topic."""

from collections.abc import Collection, Mapping
from enum import StrEnum
from functools import cache
from typing import TypeVar

Topic = TypeVar("Topic", str, bytes)
"""A topic's name or its id, as long as topics can be ordered."""

Subscriptions = Mapping[str, Collection[Topic]]
"""The topics that each member subscribes to."""
PartitionCounts = Mapping[Topic, int]
"""The topics that exist; others are ignored."""
Assignment = dict[str, dict[Topic, list[int]]]
"""Every member's partitions, in order; topics without partitions are left out."""


class Assignor(StrEnum):
    """Assignors of classic groups, by the names that all clients use."""

    RANGE = "range"
    ROUND_ROBIN = "roundrobin"


def subscribers(
    subscriptions: Subscriptions[Topic], partition_counts: PartitionCounts[Topic]
) -> dict[Topic, tuple[str, ...]]:
    """The members that subscribe to each topic, topics in order, members as in `subscriptions`.

    Most members of a group subscribe to the same topics: equal subscriptions are handled once.

    >>> subscribers({"b": ["x"], "a": ["x", "gone"]}, {"y": 1, "x": 2})
    {'x': ('b', 'a')}
    """
    equal: dict[frozenset[Topic], list[int]] = {}
    for index, topics in enumerate(subscriptions.values()):
        equal.setdefault(frozenset(topics), []).append(index)
    groups_of: dict[Topic, list[int]] = {}
    for number, topics in enumerate(equal):
        for topic in topics:
            if partition_counts.get(topic, 0):
                groups_of.setdefault(topic, []).append(number)
    members, member_groups = list(subscriptions), list(equal.values())

    @cache
    def readers(numbers: tuple[int, ...]) -> tuple[str, ...]:
        indices = sorted(index for number in numbers for index in member_groups[number])
        return tuple(members[index] for index in indices)

    return {topic: readers(tuple(groups_of[topic])) for topic in sorted(groups_of)}
