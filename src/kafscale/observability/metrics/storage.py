"""Metrics of the object store, the WAL and segments."""

from typing import Final

from kafscale.observability.metrics.counters import Counters, StoreHealth
from kafscale.observability.metrics.metric import BrokerMetric, Series, counter, gauge


def _operations(traffic: Counters) -> Series:
    for operation, counters in traffic.by_operation.items():
        yield (operation, "success"), counters.succeeded
        yield (operation, "error"), counters.failed


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
        lambda traffic: (((name,), found.seconds) for name, found in traffic.by_operation.items()),
    ),
    BrokerMetric(
        "kafscale_s3_health_state",
        "gauge",
        ("state",),
        "1 for the current state of the object store, 0 for the others.",
        lambda traffic: (
            ((state,), int(state == traffic.store_health.state)) for state in StoreHealth.STATES
        ),
    ),
    gauge(
        "kafscale_s3_error_rate",
        "Share of recent requests to the object store that failed.",
        lambda traffic: traffic.store_health.error_rate,
    ),
    gauge(
        "kafscale_cache_size_bytes",
        "Blocks of segments in the cache.",
        lambda traffic: traffic.log.cache_bytes,
    ),
    gauge(
        "kafscale_unflushed_bytes",
        "Records in memory that are not durable yet, over all partitions.",
        lambda traffic: traffic.log.unflushed_bytes,
    ),
    gauge(
        "kafscale_tail_bytes",
        "Newest records in memory, for consumers and until they are in segments.",
        lambda traffic: traffic.log.tail_bytes,
    ),
    gauge(
        "kafscale_wal_objects",
        "WAL objects whose records are not all in segments yet.",
        lambda traffic: traffic.log.wal_objects,
    ),
    counter(
        "kafscale_wal_puts_total", "WAL objects written.", lambda traffic: traffic.log.wal_puts
    ),
    counter(
        "kafscale_wal_bytes_total",
        "Bytes of WAL objects written.",
        lambda traffic: traffic.log.wal_bytes,
    ),
    counter(
        "kafscale_wal_retries_total",
        "Retries of WAL uploads.",
        lambda traffic: traffic.log.wal_retries,
    ),
    counter(
        "kafscale_segments_rolled_total",
        "Segments written.",
        lambda traffic: traffic.log.segments_rolled,
    ),
    counter(
        "kafscale_segment_bytes_rolled_total",
        "Bytes of segments written.",
        lambda traffic: traffic.log.segment_bytes_rolled,
    ),
)
