"""What a scrape is told of logs: what they keep, what waits; and that deleted ones are gone."""

from collections.abc import Iterator

from kafscale.metadata.schema.model import Topic
from kafscale.metadata.topics.catalog import Catalog
from kafscale.observability.metrics.broker import Metrics
from kafscale.storage.engine import StorageEngine


def show(metrics: Metrics, storage: StorageEngine, catalog: Catalog) -> None:
    """Have the metrics ask for sizes whenever a scrape comes, and forget what is deleted."""

    def sizes() -> Iterator[tuple[str, int, int]]:
        for served in storage.logs:
            size_bytes = served.segments.total_bytes + served.tail.unrolled_bytes
            yield served.topic, served.partition, size_bytes

    def waiting() -> Iterator[tuple[str, int, int]]:
        found = storage.wal.unflushed_bytes_by_log()
        for served in storage.logs:
            yield served.topic, served.partition, found.get(served, 0)

    def on_topic(before: Topic | None, after: Topic | None) -> None:
        if after is None and before is not None:
            metrics.forget_topic(before.name)

    metrics.stored_bytes = sizes
    metrics.buffered_bytes = waiting
    catalog.subscribe(on_topic)
