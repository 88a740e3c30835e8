"""Scans a bucket for topics and partitions, independently of the metadata store.

Invariants: the scan finds all acknowledged records, in segments or in fenced WAL streams. Times are
the store's own modification times, so that they can be compared. Object keys contain topic names;
only WAL objects contain topic ids. A stream without a fence belongs to a live broker and is
skipped. The caller decides what to restore.
"""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterable
from typing import Any, Final

import msgspec

from kafscale.aio.gather import gather_or_cancel
from kafscale.errors import DamagedObjectError, ObjectNotFoundError
from kafscale.observability.logging import get_logger
from kafscale.storage import topic_catalog
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.objects.store import ObjectInfo, ObjectStore
from kafscale.storage.topic_catalog import Catalog
from kafscale.storage.wal.streams import Streams, read_ranges

logger = get_logger(__name__)

PARALLEL_READS_MAX: Final = 32
"""Limit of concurrent reads of small objects."""

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

    objects: PartitionScan
    """Objects under the topic's name: segments, indexes and log start objects."""
    in_wal: defaultdict[bytes, PartitionScan]
    """Records in WAL objects, by topic id."""

    @classmethod
    def empty(cls) -> "TopicScan":
        return cls(PartitionScan(), defaultdict(PartitionScan))


class BucketScan(msgspec.Struct):
    """The result of a scan."""

    topics: defaultdict[str, TopicScan]
    log_starts: dict[tuple[str, int], int]
    """Log start offsets by topic and partition, from log start objects."""
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
        self._reads = asyncio.Semaphore(PARALLEL_READS_MAX)

    async def scan(self) -> BucketScan:
        scan = BucketScan(defaultdict(TopicScan.empty), {})
        await self._read_catalog(scan)
        # Streams first: records that are rolled meanwhile are found as segments.
        await self._read_streams(scan)
        await self._list(scan)
        return scan

    async def _read_catalog(self, scan: BucketScan) -> None:
        key = object_keys.catalog_key(self._namespace)
        try:
            info = await self._store.head(key)
            scan.catalog = topic_catalog.decode(key, bytes(await self._store.get(key)))
            scan.catalog_ms = info.modified_ms
        except ObjectNotFoundError:
            logger.warning("topic catalog missing", key=key)
        except DamagedObjectError as error:
            logger.warning("damaged topic catalog", key=key, reason=error.reason)

    async def _read_streams(self, scan: BucketScan) -> None:
        items = [
            item
            for stream in await self._streams.all()
            if stream.fence is not None
            for item in stream.acknowledged
            if item.size_bytes != wal_object.EMPTY_BYTES
        ]
        scan.wal_object_count = len(items)
        await self._gather_limited(self._read_ranges(item, scan) for item in items)

    async def _read_ranges(self, item: ObjectInfo, scan: BucketScan) -> None:
        try:
            ranges = await read_ranges(self._store, item)
        except DamagedObjectError as error:
            logger.warning("damaged WAL object", key=item.key, reason=error.reason)
            return
        for range_ in ranges:
            if range_.partition < PARTITION_COUNT_MAX:
                partitions = scan.topics[range_.topic].in_wal[range_.topic_id]
                partitions.add(range_.partition, item.modified_ms)

    async def _list(self, scan: BucketScan) -> None:
        with_log_start = []
        async for chunk in self._store.list(f"{self._namespace}/"):
            scan.object_count += len(chunk)
            for item in chunk:
                topic_partition = self._parse_key(item.key)
                if topic_partition is None:
                    continue
                topic, partition = topic_partition
                scan.topics[topic].objects.add(partition, item.modified_ms)
                if item.key == object_keys.log_start_key(self._namespace, topic, partition):
                    with_log_start.append(topic_partition)
        await self._gather_limited(
            self._read_start(topic_partition, scan) for topic_partition in with_log_start
        )

    def _parse_key(self, key: str) -> tuple[str, int] | None:
        """The topic and partition of an object; None if the key is not a segment or log start."""
        segment = object_keys.parse_segment(self._namespace, key)
        if segment is not None:
            topic_partition = segment.topic, segment.partition
        elif (log_start := object_keys.parse_log_start(self._namespace, key)) is not None:
            topic_partition = log_start
        else:
            return None
        if topic_partition[1] >= PARTITION_COUNT_MAX:
            logger.warning("object of an invalid partition ignored", key=key)
            return None
        return topic_partition

    async def _read_start(self, topic_partition: tuple[str, int], scan: BucketScan) -> None:
        key = object_keys.log_start_key(self._namespace, *topic_partition)
        data = bytes(await self._store.get(key))
        if data.isdigit():
            scan.log_starts[topic_partition] = int(data)
        else:
            logger.warning("damaged log start object", key=key)

    async def _gather_limited(self, awaitables: Iterable[Coroutine[Any, Any, None]]) -> None:
        """Await all, with a limited number at a time."""

        async def one(awaitable: Coroutine[Any, Any, None]) -> None:
            async with self._reads:
                await awaitable

        await gather_or_cancel(one(awaitable) for awaitable in awaitables)
