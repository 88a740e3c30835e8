"""Metrics of the object store, the WAL and segments."""

from typing import Final

from kafscale.observability.metrics.cardinality import TOPIC_SERIES_MAX, limit_series
from kafscale.observability.metrics.counters import Counters, StoreHealth
from kafscale.observability.metrics.metric import BrokerMetric, Series, counter, gauge


def _operations(counters: Counters) -> Series:
    for operation, operation_counters in counters.by_operation.items():
        yield (operation, "success"), operation_counters.succeeded
        yield (operation, "error"), operation_counters.failed


def _compactions(counters: Counters) -> Series:
    compaction = counters.compaction()
    yield ("success",), compaction.runs
    yield ("error",), compaction.failures


def _compaction_bytes(counters: Counters) -> Series:
    compaction = counters.compaction()
    yield ("read",), compaction.bytes_read
    yield ("write",), compaction.bytes_written


STORAGE_METRICS: Final = (
    BrokerMetric(
        "kafscale_s3_operations_total",
        "counter",
        ("operation", "status"),
        "Requests to the object store.",
        _operations,
    ),
    BrokerMetric(
        "kafscale_s3_latency_seconds",
        "histogram",
        ("operation",),
        "Latency of requests to the object store.",
        lambda counters: (
            ((name,), operation_counters.seconds)
            for name, operation_counters in counters.by_operation.items()
        ),
    ),
    BrokerMetric(
        "kafscale_s3_health_state",
        "gauge",
        ("state",),
        "1 for the current state of the object store, 0 for the others.",
        lambda counters: (
            ((state,), int(state == counters.store_health.state)) for state in StoreHealth.STATES
        ),
    ),
    gauge(
        "kafscale_s3_error_rate",
        "Share of recent requests to the object store that failed.",
        lambda counters: counters.store_health.error_rate,
    ),
    gauge(
        "kafscale_cache_size_bytes",
        "Blocks of segments in the cache.",
        lambda counters: counters.log.cache_bytes,
    ),
    gauge(
        "kafscale_unflushed_bytes",
        "Records in memory that are not durable yet, over all partitions.",
        lambda counters: counters.log.unflushed_bytes,
    ),
    gauge(
        "kafscale_tail_bytes",
        "Newest records in memory, for consumers and until they are in segments.",
        lambda counters: counters.log.tail_bytes,
    ),
    gauge(
        "kafscale_wal_objects",
        "WAL objects whose records are not all in segments yet.",
        lambda counters: counters.log.wal_objects,
    ),
    counter(
        "kafscale_wal_puts_total", "WAL objects written.", lambda counters: counters.log.wal_puts
    ),
    counter(
        "kafscale_wal_bytes_total",
        "Bytes of WAL objects written.",
        lambda counters: counters.log.wal_bytes,
    ),
    counter(
        "kafscale_wal_retries_total",
        "Retries of WAL uploads.",
        lambda counters: counters.log.wal_retries,
    ),
    counter(
        "kafscale_segments_rolled_total",
        "Segments written.",
        lambda counters: counters.log.segments_rolled,
    ),
    counter(
        "kafscale_segment_bytes_rolled_total",
        "Bytes of segments written.",
        lambda counters: counters.log.segment_bytes_rolled,
    ),
    counter(
        "kafscale_storage_damaged_reads_total",
        "Reads that found a damaged segment; Fetch answers them with CORRUPT_MESSAGE.",
        lambda counters: counters.log.damaged_reads,
    ),
    BrokerMetric(
        "kafscale_compaction_runs_total",
        "counter",
        ("status",),
        "Compactions of a partition by this broker.",
        _compactions,
    ),
    BrokerMetric(
        "kafscale_compaction_bytes_total",
        "counter",
        ("operation",),
        "Bytes of segments that compaction has read and written.",
        _compaction_bytes,
    ),
    counter(
        "kafscale_compaction_reclaimed_bytes_total",
        "By how many bytes compaction has made segments smaller.",
        lambda counters: counters.compaction().bytes_reclaimed,
    ),
    counter(
        "kafscale_compaction_removed_records_total",
        "Records that compaction has removed, because newer ones have their keys.",
        lambda counters: counters.compaction().records_removed,
    ),
    BrokerMetric(
        "kafscale_compaction_dirty_ratio",
        "gauge",
        ("topic",),
        "Share of the bytes of a compacted topic that is not compacted yet: the largest of its"
        " partitions on this broker, at the last check.",
        lambda counters: limit_series(
            counters.compaction().dirty_ratios, TOPIC_SERIES_MAX, lambda topic: (topic,), max
        ),
    ),
)
