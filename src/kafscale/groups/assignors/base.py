"""The words that all assignors share, and who subscribes to which topic that exists."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import TypeVar

Topic = TypeVar("Topic", str, bytes)
"""A topic's name or its id: assignors do not care, as long as topics can be put in order."""

Subscriptions = Mapping[str, Collection[Topic]]
"""The topics that each member wants to read."""
PartitionCounts = Mapping[Topic, int]
"""The topics that there are; whoever subscribes to another one gets nothing of it."""
Assignment = dict[str, dict[Topic, list[int]]]
"""Every member's partitions, in order; a topic of which it gets none is not there."""


def subscribers(
    subscriptions: Subscriptions[Topic], partition_counts: PartitionCounts[Topic]
) -> dict[Topic, tuple[str, ...]]:
    """Who reads which topic, topics in order, members in that of `subscriptions`.

    Most members of a group subscribe to the same topics: those are looked at once for all of them.

    >>> subscribers({"b": ["x"], "a": ["x", "gone"]}, {"y": 1, "x": 2})
    {'x': ('b', 'a')}
    """
    alike: dict[frozenset[Topic], list[int]] = {}
    for index, topics in enumerate(subscriptions.values()):
        alike.setdefault(frozenset(topics), []).append(index)
    crowds_of: dict[Topic, list[int]] = {}
    for number, topics in enumerate(alike):
        for topic in topics:
            if partition_counts.get(topic, 0):
                crowds_of.setdefault(topic, []).append(number)
    members, crowds = list(subscriptions), list(alike.values())

    @cache
    def readers(numbers: tuple[int, ...]) -> tuple[str, ...]:
        indices = sorted(index for number in numbers for index in crowds[number])
        return tuple(members[index] for index in indices)

    return {topic: readers(tuple(crowds_of[topic])) for topic in sorted(crowds_of)}
