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
    ANSWER_BOUNDS,
    GroupTraffic,
    PartitionTraffic,
    TopicTraffic,
)
from kafscale.observability.metrics.histogram import Distribution

OTHER: Final = "other"
"""The value of a label for all that is not told by name."""

PARTITIONS_TOLD_MAX: Final = 5000
TOPICS_TOLD_MAX: Final = 1000
GROUPS_TOLD_MAX: Final = 1000
LAGS_TOLD_MAX: Final = 10_000
"""Of groups in partitions."""

Key = TypeVar("Key")
Numbers = TypeVar("Numbers")


def told(
    by_key: Mapping[Key, Numbers],
    most: int,
    labels: Callable[[Key], tuple[str, ...]],
    together: Callable[[Iterable[Numbers]], Numbers],
) -> Iterator[tuple[tuple[str, ...], Numbers]]:
    """The numbers with their labels: `most` of them by name, the rest as one.

    >>> list(told({"a": 1, "b": 2, "c": 3}, 1, lambda key: (key,), sum))
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
    by_partition: Mapping[tuple[str, int], PartitionTraffic],
) -> Iterator[tuple[tuple[str, ...], PartitionTraffic]]:
    return told(by_partition, PARTITIONS_TOLD_MAX, _place, _all_partitions)


def topics(by_topic: Mapping[str, TopicTraffic]) -> Iterator[tuple[str, TopicTraffic]]:
    for (topic,), found in told(by_topic, TOPICS_TOLD_MAX, _name, _all_topics):
        yield topic, found


def groups(by_group: Mapping[str, GroupTraffic]) -> Iterator[tuple[tuple[str, ...], GroupTraffic]]:
    return told(by_group, GROUPS_TOLD_MAX, _name, _all_groups)


def figures(
    series: Iterable[tuple[tuple[str, ...], int]], most: int
) -> Iterator[tuple[tuple[str, ...], int]]:
    """The same for plain numbers, which are added up."""
    return told(dict(series), most, tuple, sum)


def _place(key: tuple[str, int]) -> tuple[str, str]:
    return key[0], str(key[1])


def _name(key: str) -> tuple[str]:
    return (key,)


def _all_partitions(found: Iterable[PartitionTraffic]) -> PartitionTraffic:
    whole = PartitionTraffic()
    for one in found:
        for name in PartitionTraffic.__slots__:
            setattr(whole, name, getattr(whole, name) + getattr(one, name))
    return whole


def _all_groups(found: Iterable[GroupTraffic]) -> GroupTraffic:
    whole = GroupTraffic()
    for one in found:
        whole.rebalances += one.rebalances
        whole.commits += one.commits
    return whole


def _all_topics(found: Iterable[TopicTraffic]) -> TopicTraffic:
    whole = TopicTraffic()
    for one in found:
        for acks, seconds in one.produce_seconds.items():
            _add(whole.produce_seconds, acks, seconds)
        for cache_hit, seconds in one.fetch_seconds.items():
            _add(whole.fetch_seconds, cache_hit, seconds)
    return whole


def _add(into: dict[Key, Distribution], key: Key, more: Distribution) -> None:
    into.setdefault(key, Distribution(ANSWER_BOUNDS)).add(more)
