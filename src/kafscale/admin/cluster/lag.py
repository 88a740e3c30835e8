"""Consumer lag by group and topic, from the metrics in a snapshot. Pure."""

from collections.abc import Iterable, Mapping

import msgspec

from kafscale.admin.cluster.metrics import PartitionLag
from kafscale.admin.cluster.snapshot import ClusterSnapshot

ByTopic = dict[str, int]


class GroupLag(msgspec.Struct, frozen=True):
    """The lag of a group in one topic, in records."""

    group: str
    topic: str
    lag: int


def from_snapshot(snapshot: ClusterSnapshot) -> dict[str, ByTopic]:
    """The lag of all groups by topic."""
    return by_group(
        lag for broker in snapshot.brokers if broker.metrics for lag in broker.metrics.lags
    )


def by_group(lags: Iterable[PartitionLag]) -> dict[str, ByTopic]:
    """Sum the lag of partitions by group and topic.

    A group that moves between coordinators may be reported by both; each partition counts once.

    >>> lags = [PartitionLag("g", "a", *each) for each in ((0, 5), (1, 2), (0, 4))]
    >>> by_group(lags)
    {'g': {'a': 7}}
    """
    by_partition: dict[tuple[str, str, int], int] = {}
    for each in lags:
        key = each.group, each.topic, each.partition
        by_partition[key] = max(by_partition.get(key, 0), each.lag)
    lags_by_group: dict[str, ByTopic] = {}
    for (group, topic, _), lag in by_partition.items():
        topics = lags_by_group.setdefault(group, {})
        topics[topic] = topics.get(topic, 0) + lag
    return lags_by_group


def total(lags: Mapping[str, ByTopic]) -> int:
    return sum(sum(topics.values()) for topics in lags.values())


def largest(lags: Mapping[str, ByTopic], count: int) -> list[GroupLag]:
    """The largest lags in descending order, without zeros.

    >>> [each.topic for each in largest({"g": {"a": 7, "b": 9, "c": 0}}, 10)]
    ['b', 'a']
    """
    rows = (
        GroupLag(group, topic, lag)
        for group, topics in lags.items()
        for topic, lag in topics.items()
        if lag > 0
    )
    return sorted(rows, key=lambda each: (-each.lag, each.group, each.topic))[:count]
