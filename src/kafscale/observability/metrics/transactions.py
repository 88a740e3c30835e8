"""The metrics of transactions: transactional ids of the coordinator, open transactions of logs."""

from heapq import nlargest
from typing import Final

from kafscale.observability.metrics import cardinality
from kafscale.observability.metrics.counters import Counters
from kafscale.observability.metrics.metric import BrokerMetric, Series, counter, gauge

OPEN_SERIES_MAX: Final = 1000
"""Limit of partitions with series of their own: those with the oldest open transactions. The oldest
of all others is shown as `other`."""


def _ended(counters: Counters) -> Series:
    yield ("commit",), counters.transactions.committed
    yield ("abort",), counters.transactions.aborted


def _oldest_seconds(counters: Counters) -> Series:
    oldest = nlargest(OPEN_SERIES_MAX + 1, counters.open_transactions(), key=lambda each: each[2])
    for topic, partition, seconds in oldest[:OPEN_SERIES_MAX]:
        yield (topic, str(partition)), seconds
    for *_, seconds in oldest[OPEN_SERIES_MAX:]:
        yield (cardinality.OTHER, cardinality.OTHER), seconds


TRANSACTION_METRICS: Final = (
    BrokerMetric(
        "kafscale_transactional_ids",
        "gauge",
        ("state",),
        "Transactional ids by the state of their newest transaction.",
        lambda counters: (
            ((state,), count) for state, count in counters.transaction_states().items()
        ),
    ),
    BrokerMetric(
        "kafscale_transactions_total",
        "counter",
        ("outcome",),
        "Transactions that were ended, by their outcome.",
        _ended,
    ),
    counter(
        "kafscale_transactions_timed_out_total",
        "Transactions that were aborted because they were open for longer than their timeout.",
        lambda counters: counters.transactions.timed_out,
    ),
    gauge(
        "kafscale_transaction_markers_pending",
        "Markers of ended transactions that their partitions do not have yet.",
        lambda counters: counters.pending_markers(),
    ),
    BrokerMetric(
        "kafscale_oldest_transaction_seconds",
        "gauge",
        ("topic", "partition"),
        "Age of the oldest open transaction of a partition; partitions without one have no series.",
        _oldest_seconds,
    ),
)
