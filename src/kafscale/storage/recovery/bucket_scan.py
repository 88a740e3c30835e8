"""Scans a bucket for topics and partitions, independently of the metadata store.

Invariants: the scan finds all acknowledged records, in segments or in fenced WAL streams. Times are
the store's own modification times, so that they can be compared. WAL objects contain topic ids;
other keys contain a topic's name, and its id only if the name was used before. A stream without a
fence belongs to a live broker and is skipped. The caller decides what to restore.
"""

from collections import defaultdict
from typing import Final

import msgspec

from kafscale.aio.gather import map_limited
from kafscale.errors import DamagedObjectError, ObjectNotFoundError
from kafscale.observability.logging import get_logger
from kafscale.storage import topic_catalog
from kafscale.storage.bucket import READS_MAX, list_objects, read_log_start, read_wal_ranges
from kafscale.storage.formats import object_keys
from kafscale.storage.formats.object_keys import LogStartRef, SegmentRef
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.topic_catalog import Catalog
from kafscale.storage.wal.streams import Streams

logger = get_logger(__name__)

PARTITION_COUNT_MAX: Final = 10_000
"""Limit of partitions per topic; objects of higher partitions are ignored."""


class PartitionScan(msgspec.Struct):
    """The partitions of a topic that were found in one place."""

    partition_count: int = 0
    """The highest partition that was found, plus one."""
    newest_ms: int = -1
    """When the newest object was written."""

    def add(self, partition: int, modified_ms: int) -> None:
        self.partition_count = max(self.partition_count, partition + 1)
        self.newest_ms = max(self.newest_ms, modified_ms)


class TopicScan(msgspec.Struct):
    """What was found of a topic, or of several that had the same name one after another."""

    objects: defaultdict[str, PartitionScan]
    """Segments, indexes and log start objects, by topic directory."""
    in_wal: defaultdict[bytes, PartitionScan]
    """Records in WAL objects, by topic id."""

    @classmethod
    def empty(cls) -> "TopicScan":
        return cls(defaultdict(PartitionScan), defaultdict(PartitionScan))


class BucketScan(msgspec.Struct):
    """The result of a scan."""

    topics: defaultdict[str, TopicScan]
    log_starts: dict[tuple[str, int], int]
    """Log start offsets by topic directory and partition, from log start objects."""
    catalog: Catalog | None = None
    catalog_ms: int = -1
    """When the catalog was written."""
    object_count: int = 0
    wal_object_count: int = 0


class BucketScanner:
    """Scans a namespace."""

    def __init__(self, store: ObjectStore, namespace: str, streams: Streams) -> None:
        self._store = store
        self._namespace = namespace
        self._streams = streams

    async def scan(self) -> BucketScan:
        scan = BucketScan(defaultdict(TopicScan.empty), {})
        await self._read_catalog(scan)
        # Streams first: records that are rolled meanwhile are found as segments.
        await self._read_streams(scan)
        await self._list(scan)
        return scan

    async def _read_catalog(self, scan: BucketScan) -> None:
        try:
            scan.catalog, scan.catalog_ms = await topic_catalog.read(self._store, self._namespace)
        except ObjectNotFoundError as error:
            logger.warning("topic catalog missing", key=str(error))
        except DamagedObjectError as error:
            logger.warning("damaged topic catalog", key=error.key, reason=error.reason)

    async def _read_streams(self, scan: BucketScan) -> None:
        items = [item for stream in await self._streams.fenced() for item in stream.with_records]
        scan.wal_object_count = len(items)
        ranges = await read_wal_ranges(self._store, items)
        for item in items:
            for range_ in ranges.get(item.key, ()):
                if range_.partition < PARTITION_COUNT_MAX:
                    partitions = scan.topics[range_.topic].in_wal[range_.topic_id]
                    partitions.add(range_.partition, item.modified_ms)

    async def _list(self, scan: BucketScan) -> None:
        with_log_start = []
        objects = list_objects(self._store, self._namespace, f"{self._namespace}/")
        async for ref, item in objects:
            scan.object_count += 1
            if not isinstance(ref, SegmentRef | LogStartRef):
                continue
            if ref.partition >= PARTITION_COUNT_MAX:
                logger.warning("object of an invalid partition ignored", key=item.key)
                continue
            scan.topics[ref.topic].objects[ref.directory].add(ref.partition, item.modified_ms)
            if isinstance(ref, LogStartRef):
                with_log_start.append(ref)

        async def read(ref: LogStartRef) -> None:
            try:
                key = object_keys.log_start_key(self._namespace, ref.directory, ref.partition)
                scan.log_starts[ref.directory, ref.partition] = await read_log_start(
                    self._store, key
                )
            except DamagedObjectError as error:
                logger.warning("damaged log start object", key=error.key, reason=error.reason)

        await map_limited(read, with_log_start, READS_MAX)
