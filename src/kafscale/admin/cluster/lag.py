"""How far groups lag behind, of what the brokers of a look tell. Pure."""

from collections.abc import Iterable, Mapping

import msgspec

from kafscale.admin.cluster.figures import Lag
from kafscale.admin.cluster.snapshot import ClusterLook

ByTopic = dict[str, int]


class GroupLag(msgspec.Struct, frozen=True):
    """How many records of a topic a group has yet to read."""

    group: str
    topic: str
    lag: int


def of_look(look: ClusterLook) -> dict[str, ByTopic]:
    """The lags of all groups, topic by topic."""
    return by_group(lag for broker in look.brokers if broker.figures for lag in broker.figures.lags)


def by_group(lags: Iterable[Lag]) -> dict[str, ByTopic]:
    """The same, of lags in partitions.

    A group that moves from one broker to another may be told of by both, and counts once.

    >>> by_group([Lag("g", "a", 0, 5), Lag("g", "a", 1, 2), Lag("g", "a", 0, 4)])
    {'g': {'a': 7}}
    """
    single: dict[tuple[str, str, int], int] = {}
    for each in lags:
        key = each.group, each.topic, each.partition
        single[key] = max(single.get(key, 0), each.lag)
    found: dict[str, ByTopic] = {}
    for (group, topic, _), lag in single.items():
        topics = found.setdefault(group, {})
        topics[topic] = topics.get(topic, 0) + lag
    return found


def total(lags: Mapping[str, ByTopic]) -> int:
    return sum(sum(topics.values()) for topics in lags.values())


def largest(lags: Mapping[str, ByTopic], count: int) -> list[GroupLag]:
    """The largest lags, the largest first; who lags behind nothing is not among them.

    >>> [each.topic for each in largest({"g": {"a": 7, "b": 9, "c": 0}}, 10)]
    ['b', 'a']
    """
    every = (
        GroupLag(group, topic, lag)
        for group, topics in lags.items()
        for topic, lag in topics.items()
        if lag > 0
    )
    return sorted(every, key=lambda each: (-each.lag, each.group, each.topic))[:count]
