"""Rates per second, from the counters of two snapshots. Pure.

Increments are computed per broker and partition, because counters restart with a broker and when a
partition moves. The counters of a broker at its first sample are the baseline. Snapshots that are
very close together yield no new rates.
"""

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from kafscale.admin.cluster.metrics import OTHER, BrokerMetrics
from kafscale.admin.cluster.snapshot import ClusterSnapshot
from kafscale.text.topic_partition import TopicPartition

SECONDS_MIN: Final = 1.0
SECONDS_MAX: Final = 120.0
"""After a longer gap between snapshots, rates start over."""

Key = TypeVar("Key")


class TopicRate(msgspec.Struct, frozen=True, gc=False):
    """In bytes per second."""

    produce: float = 0.0
    fetch: float = 0.0


class BrokerRate(msgspec.Struct, frozen=True, gc=False):
    """Per second."""

    produce_bytes: float
    fetch_bytes: float
    produce_requests: float
    fetch_requests: float


class Rates(msgspec.Struct, frozen=True):
    """The rates of a cluster; idle topics are omitted."""

    brokers: dict[int, BrokerRate] = {}
    topics: dict[str, TopicRate] = {}

    def total(self, name: str) -> float | None:
        """The sum over all brokers; None if no broker has rates."""
        if not self.brokers:
            return None
        return float(sum(getattr(each, name) for each in self.brokers.values()))


class Sample(msgspec.Struct, frozen=True):
    """The counters of a broker in a snapshot."""

    epoch: int
    metrics: BrokerMetrics


class RateMeter:
    """Computes rates between consecutive snapshots."""

    def __init__(self) -> None:
        self.rates = Rates()
        self._at_ms: int | None = None
        self._samples: dict[int, Sample] = {}

    def update(self, snapshot: ClusterSnapshot) -> Rates:
        seconds = 0.0 if self._at_ms is None else (snapshot.at_ms - self._at_ms) / 1000
        if self._at_ms is not None and 0 <= seconds < SECONDS_MIN:
            return self.rates
        samples = {
            each.id: Sample(each.epoch, each.metrics) for each in snapshot.brokers if each.metrics
        }
        comparable = self._samples if 0 < seconds <= SECONDS_MAX else {}
        self.rates = _rates(comparable, samples, seconds)
        self._at_ms = snapshot.at_ms
        self._samples = samples
        return self.rates


def growth(before: Mapping[Key, int], after: Mapping[Key, int]) -> dict[Key, int]:
    """The increments of counters; a counter that decreased has restarted at 0.

    >>> growth({"a": 5, "b": 9}, {"a": 7, "b": 2, "c": 1, "d": 0})
    {'a': 2, 'b': 2, 'c': 1}
    """
    increments = {}
    for key, value in after.items():
        previous = before.get(key, 0)
        increment = value - previous if value >= previous else value
        if increment:
            increments[key] = increment
    return increments


def _rates(before: Mapping[int, Sample], after: Mapping[int, Sample], seconds: float) -> Rates:
    brokers: dict[int, BrokerRate] = {}
    produced: dict[str, int] = {}
    fetched: dict[str, int] = {}
    for broker_id, current in after.items():
        if broker_id not in before:
            continue
        previous = before[broker_id].metrics if before[broker_id].epoch == current.epoch else None
        totals = {}
        for name, by_topic in (("produce_bytes", produced), ("fetch_bytes", fetched)):
            previous_values: Mapping[TopicPartition, int] = (
                getattr(previous, name) if previous else {}
            )
            increments = growth(previous_values, getattr(current.metrics, name))
            totals[name] = sum(increments.values()) / seconds
            for topic_partition, increment in increments.items():
                if topic_partition != OTHER:
                    by_topic[topic_partition[0]] = by_topic.get(topic_partition[0], 0) + increment
        requests = growth(_requests(previous) if previous else {}, _requests(current.metrics))
        brokers[broker_id] = BrokerRate(
            **totals, **{name: requests.get(name, 0) / seconds for name in _REQUESTS}
        )
    topics = {
        name: TopicRate(produced.get(name, 0) / seconds, fetched.get(name, 0) / seconds)
        for name in {*produced, *fetched}
    }
    return Rates(brokers, topics)


_REQUESTS: Final = ("produce_requests", "fetch_requests")


def _requests(metrics: BrokerMetrics) -> dict[str, int]:
    return {name: getattr(metrics, name) for name in _REQUESTS}
