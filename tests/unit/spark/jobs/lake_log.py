"""A log in a data directory, and the rows that a table of it must have."""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from kafscale.records import BatchView, Codec, Header, Record, build
from kafscale.spark.read.location import Location
from kafscale.spark.runtime.job_result import JobResult
from kafscale.storage import topic_catalog
from kafscale.storage.formats import object_keys, segment
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.local.store import LocalObjectStore

NAMESPACE = "default"
BATCH_RECORDS = 4
START_MS = 1_700_000_000_000

Row = tuple[Any, ...]


class LakeLog:
    """Topics in a data directory; batches take turns with codecs."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "objects").mkdir(parents=True)
        self.records: dict[tuple[str, int], list[Record]] = {}
        self._codecs = cycle(Codec)

    @property
    def location(self) -> Location:
        return Location.parse(str(self.directory))

    def append(
        self,
        topic: str,
        partition: int,
        values: Sequence[bytes | None],
        *,
        keys: Sequence[bytes | None] | None = None,
        step_ms: int = 1000,
    ) -> None:
        """Append a segment with these values."""
        known = self.records.setdefault((topic, partition), [])
        records = [
            Record(
                len(known) + index,
                START_MS + (len(known) + index) * step_ms,
                keys[index] if keys else b"key %d" % (index % 3),
                value,
                (Header("trace", b"%d" % index),) if index % 2 else (),
            )
            for index, value in enumerate(values)
        ]
        known += records
        builder = segment.Builder(0, 1, compression=None, prior_max_timestamp_ms=None)
        for start in range(0, len(records), BATCH_RECORDS):
            batch = BatchView(
                build(records[start : start + BATCH_RECORDS], codec=next(self._codecs))
            )
            batch.stamp(batch.base_offset, 0)
            builder.append(batch)
        built = builder.finish()
        base_offset = records[0].offset
        with self.open() as store:
            store.put(
                object_keys.segment_key(NAMESPACE, topic, partition, base_offset), built.parts
            )
            store.put(
                object_keys.index_key(NAMESPACE, topic, partition, base_offset), [built.index]
            )

    def fill(self, topic: str, *, partitions: int = 3, count: int = 21) -> None:
        """Append `count` records to each partition."""
        for partition in range(partitions):
            known = len(self.records.get((topic, partition), ()))
            values = [
                None if index % 7 == 6 else b"value %d of %d" % (known + index, partition)
                for index in range(count)
            ]
            self.append(topic, partition, values)

    def publish(self, topic: str, topic_id: bytes, partitions: int) -> None:
        """Write the topic catalog, as brokers do."""
        known = topic_catalog.CatalogTopic(topic, topic_id.hex(), partitions)
        with self.open() as store:
            store.put(
                object_keys.catalog_key(NAMESPACE), [topic_catalog.encode([known])], create=False
            )

    def delete_segment(self, topic: str, partition: int, base_offset: int) -> None:
        with self.open() as store:
            store.delete([object_keys.segment_key(NAMESPACE, topic, partition, base_offset)])

    def open(self) -> BlockingObjectStore:
        objects = self.directory / "objects"
        return BlockingObjectStore(lambda: LocalObjectStore(objects, shared=True, fsync=False))

    def rows(self, topic: str) -> list[Row]:
        """Return the rows of a table of undecoded records, by partition and offset."""
        return [
            (
                partition,
                record.offset,
                record.timestamp_ms,
                record.key,
                record.value,
                [(header.key, header.value) for header in record.headers],
            )
            for (name, partition), records in sorted(self.records.items())
            if name == topic
            for record in records
        ]


def raw_rows(table: Any) -> list[Row]:
    """Return the rows of a table in the form of `LakeLog.rows`."""
    rows = [
        (
            row["partition"],
            row["offset"],
            int(row["timestamp"].timestamp() * 1000 + 0.5),
            row["key"],
            row["value"],
            [(header["key"], header["value"]) for header in row["headers"] or ()],
        )
        for row in table.to_pylist()
    ]
    return sorted(rows, key=lambda row: row[:2])


def total(summary: JobResult, column: str) -> int:
    return sum(row[summary.columns.index(column)] or 0 for row in summary.rows)
