"""How many series a process shows at most, whatever its clients make up.

The law: names that clients choose (topics, groups) are told one by one up to a bound, in the order
in which they came; the rest is told together, under `OTHER`, so that sums stay right. Rates and
quantiles of the rest are those of all of it. The bounds are what a Prometheus bears of a broker,
and no settings: whoever comes here has too many topics to look at one by one.
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

OTHER: Final = "other"
"""The value of a label for all that is not told by name."""

PARTITION_SERIES_MAX: Final = 5000
TOPIC_SERIES_MAX: Final = 1000
GROUP_SERIES_MAX: Final = 1000
LAG_SERIES_MAX: Final = 10_000
"""Of groups in partitions."""

Key = TypeVar("Key")
Numbers = TypeVar("Numbers")


def limit_series(
    by_key: Mapping[Key, Numbers],
    most: int,
    labels: Callable[[Key], tuple[str, ...]],
    together: Callable[[Iterable[Numbers]], Numbers],
) -> Iterator[tuple[tuple[str, ...], Numbers]]:
    """The numbers with their labels: `most` of them by name, the rest as one.

    >>> list(limit_series({"a": 1, "b": 2, "c": 3}, 1, lambda key: (key,), sum))
    [(('a',), 1), (('other',), 5)]
    """
    items = iter(by_key.items())
    named = 0
    for key, numbers in islice(items, most):
        found = labels(key)
        named = len(found)
        yield found, numbers
    if len(by_key) > most:
        yield (OTHER,) * named, together(numbers for _, numbers in items)


def partitions(
    by_partition: Mapping[tuple[str, int], PartitionCounters],
) -> Iterator[tuple[tuple[str, ...], PartitionCounters]]:
    return limit_series(by_partition, PARTITION_SERIES_MAX, _place, _all_partitions)


def topics(by_topic: Mapping[str, TopicLatencies]) -> Iterator[tuple[str, TopicLatencies]]:
    for (topic,), found in limit_series(by_topic, TOPIC_SERIES_MAX, _name, _all_topics):
        yield topic, found


def groups(
    by_group: Mapping[str, GroupCounters],
) -> Iterator[tuple[tuple[str, ...], GroupCounters]]:
    return limit_series(by_group, GROUP_SERIES_MAX, _name, _all_groups)


def limit_totals(
    series: Iterable[tuple[tuple[str, ...], int]], most: int
) -> Iterator[tuple[tuple[str, ...], int]]:
    """The same for plain numbers, which are added up."""
    return limit_series(dict(series), most, tuple, sum)


def _place(key: tuple[str, int]) -> tuple[str, str]:
    return key[0], str(key[1])


def _name(key: str) -> tuple[str]:
    return (key,)


def _all_partitions(found: Iterable[PartitionCounters]) -> PartitionCounters:
    whole = PartitionCounters()
    for one in found:
        for name in PartitionCounters.__slots__:
            setattr(whole, name, getattr(whole, name) + getattr(one, name))
    return whole


def _all_groups(found: Iterable[GroupCounters]) -> GroupCounters:
    whole = GroupCounters()
    for one in found:
        whole.rebalances += one.rebalances
        whole.commits += one.commits
    return whole


def _all_topics(found: Iterable[TopicLatencies]) -> TopicLatencies:
    whole = TopicLatencies()
    for one in found:
        for acks, seconds in one.produce_seconds.items():
            _add(whole.produce_seconds, acks, seconds)
        for cache_hit, seconds in one.fetch_seconds.items():
            _add(whole.fetch_seconds, cache_hit, seconds)
    return whole


def _add(into: dict[Key, Histogram], key: Key, more: Histogram) -> None:
    into.setdefault(key, Histogram(REQUEST_SECONDS_BOUNDS)).add(more)
