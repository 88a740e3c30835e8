"""Limits the number of series, whatever names clients choose.

Series of topics and groups are reported by name up to a limit, in the order of first use; the rest
is aggregated under `OTHER`, so that sums stay correct. The limits are what Prometheus can handle
per broker, and are no settings.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, TypeVar

from kafscale.observability.metrics.counters import (
    REQUEST_SECONDS_BOUNDS,
    GroupCounters,
    PartitionCounters,
    TopicLatencies,
)
from kafscale.observability.metrics.histogram import Histogram
from kafscale.text.topic_partition import TopicPartition

OTHER: Final = "other"
"""The label value of the aggregate."""

PARTITION_SERIES_MAX: Final = 5000
TOPIC_SERIES_MAX: Final = 1000
GROUP_SERIES_MAX: Final = 1000
LAG_SERIES_MAX: Final = 10_000
"""Pairs of a group and a partition."""

Key = TypeVar("Key")
Numbers = TypeVar("Numbers")


def limit_series(
    by_key: Mapping[Key, Numbers],
    most: int,
    labels: Callable[[Key], tuple[str, ...]],
    aggregate: Callable[[Iterable[Numbers]], Numbers],
) -> Iterator[tuple[tuple[str, ...], Numbers]]:
    """Yield numbers with labels: at most `most` by name, and the rest aggregated.

    >>> list(limit_series({"a": 1, "b": 2, "c": 3}, 1, lambda key: (key,), sum))
    [(('a',), 1), (('other',), 5)]
    """
    items = iter(by_key.items())
    named = 0
    for key, numbers in islice(items, most):
        series = labels(key)
        named = len(series)
        yield series, numbers
    if len(by_key) > most:
        yield (OTHER,) * named, aggregate(numbers for _, numbers in items)


def partitions(
    by_partition: Mapping[TopicPartition, PartitionCounters],
) -> Iterator[tuple[tuple[str, ...], PartitionCounters]]:
    return limit_series(by_partition, PARTITION_SERIES_MAX, _partition_labels, _sum_partitions)


def topics(by_topic: Mapping[str, TopicLatencies]) -> Iterator[tuple[str, TopicLatencies]]:
    for (topic,), latencies in limit_series(by_topic, TOPIC_SERIES_MAX, _name_label, _sum_topics):
        yield topic, latencies


def groups(
    by_group: Mapping[str, GroupCounters],
) -> Iterator[tuple[tuple[str, ...], GroupCounters]]:
    return limit_series(by_group, GROUP_SERIES_MAX, _name_label, _sum_groups)


def limit_totals(
    series: Iterable[tuple[tuple[str, ...], int]], most: int
) -> Iterator[tuple[tuple[str, ...], int]]:
    """The same for plain numbers, which are summed."""
    return limit_series(dict(series), most, tuple, sum)


def _partition_labels(key: TopicPartition) -> tuple[str, str]:
    return key[0], str(key[1])


def _name_label(key: str) -> tuple[str]:
    return (key,)


def _sum_partitions(counters: Iterable[PartitionCounters]) -> PartitionCounters:
    total = PartitionCounters()
    for one in counters:
        for name in PartitionCounters.__slots__:
            setattr(total, name, getattr(total, name) + getattr(one, name))
    return total


def _sum_groups(counters: Iterable[GroupCounters]) -> GroupCounters:
    total = GroupCounters()
    for one in counters:
        total.rebalances += one.rebalances
        total.commits += one.commits
    return total


def _sum_topics(latencies: Iterable[TopicLatencies]) -> TopicLatencies:
    total = TopicLatencies()
    for one in latencies:
        for acks, seconds in one.produce_seconds.items():
            _add(total.produce_seconds, acks, seconds)
        for cache_hit, seconds in one.fetch_seconds.items():
            _add(total.fetch_seconds, cache_hit, seconds)
    return total


def _add(into: dict[Key, Histogram], key: Key, more: Histogram) -> None:
    into.setdefault(key, Histogram(REQUEST_SECONDS_BOUNDS)).add(more)
