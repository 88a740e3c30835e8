"""Registers the metrics of partition logs and consumer groups, which are read at every scrape."""

from collections import Counter
from collections.abc import Callable, Iterator

from kafscale.broker.group_coordinator.coordinator import Coordinator
from kafscale.metadata.schema.model import Topic
from kafscale.metadata.topics.catalog import Catalog
from kafscale.observability.metrics.broker import Metrics
from kafscale.storage.engine import StorageEngine

Lags = Callable[[], Iterator[tuple[str, str, int, int]]]
"""Yields group, topic, partition and lag in records."""


def register_group_metrics(metrics: Metrics, groups: Coordinator, lags: Lags) -> None:
    """Register callbacks that read the groups at every scrape."""
    metrics.group_states = lambda: Counter(hosted.group.state for hosted in groups.registry)
    metrics.group_lags = lags
    metrics.metadata_writes = lambda: groups.writer.transactions


def register_log_metrics(metrics: Metrics, storage: StorageEngine, catalog: Catalog) -> None:
    """Register callbacks that read sizes at every scrape, and drop metrics of deleted topics."""

    def stored_bytes() -> Iterator[tuple[str, int, int]]:
        for log in storage.logs:
            size_bytes = log.segments.total_bytes + log.tail.unrolled_bytes
            yield log.topic, log.partition, size_bytes

    def buffered_bytes() -> Iterator[tuple[str, int, int]]:
        by_log = storage.wal.unflushed_bytes_by_log()
        for log in storage.logs:
            yield log.topic, log.partition, by_log.get(log, 0)

    def on_topic(before: Topic | None, after: Topic | None) -> None:
        if after is None and before is not None:
            metrics.forget_topic(before.name)

    metrics.stored_bytes = stored_bytes
    metrics.buffered_bytes = buffered_bytes
    catalog.subscribe(on_topic)
