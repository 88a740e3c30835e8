"""The indexes of segments: loaded, cached, and rebuilt where they are missing or damaged.

A rebuilt index has no sections, because their state is not contained in the segment.
"""

import asyncio
from functools import partial

from kafscale.errors import DamagedObjectError, ObjectNotFoundError, OperatingError
from kafscale.observability.logging import get_logger
from kafscale.storage.formats import index, object_keys
from kafscale.storage.formats import segment as segment_format
from kafscale.storage.formats.index import Index
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.segment_list import Segment
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.read.loading_cache import LoadingCache

logger = get_logger(__name__)


class SegmentIndexes:
    """A cache of indexes."""

    def __init__(
        self, store: ObjectStore, namespace: str, *, bytes_max: int, interval_bytes: int
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._interval_bytes = interval_bytes
        self._cache: LoadingCache[str, Index] = LoadingCache(
            bytes_max, lambda entries: entries.cost_bytes
        )

    @property
    def size_bytes(self) -> int:
        return self._cache.size_bytes

    def cached(self, log: PartitionLog, segment: Segment) -> Index | None:
        """The index of a segment, if it is cached."""
        return self._cache.get(self.key(log, segment.base_offset))

    async def get(self, log: PartitionLog, segment: Segment) -> Index:
        """The index of a segment."""
        key = self.key(log, segment.base_offset)
        cached = self._cache.get(key)
        if cached is not None:
            return cached
        return await self._cache.load(key, lambda: self._load(log, segment))

    def keep(self, log: PartitionLog, base_offset: int, entries: Index) -> None:
        """Cache the index of a segment that was just written, so that no reader fetches it."""
        self._cache.put(self.key(log, base_offset), entries)

    def prefetch(self, log: PartitionLog, segment: Segment) -> None:
        """Load an index that will be needed soon."""
        key = self.key(log, segment.base_offset)
        if key not in self._cache:
            self._cache.start(key, partial(self._load, log, segment))

    def forget(self, *prefixes: str) -> None:
        """Drop the indexes whose keys begin with a prefix."""
        self._cache.discard(lambda key: key.startswith(prefixes))

    def clear(self) -> None:
        self._cache.clear()

    async def _load(self, log: PartitionLog, segment: Segment) -> Index:
        """Load the stored index; if it is missing or damaged, rebuild it from the segment."""
        key = self.key(log, segment.base_offset)
        swap_count = log.swap_count
        try:
            return index.decode(key, await self._store.get(key), segment.size_bytes)
        except (ObjectNotFoundError, DamagedObjectError) as error:
            reason = str(error)
        location = (self._namespace, log.directory, log.partition, segment.base_offset)
        segment_key = object_keys.segment_key(*location)
        data = await self._store.get(segment_key)
        rebuilt = await asyncio.to_thread(self._rebuild, segment_key, data)
        logger.warning("index rebuilt", key=key, reason=reason, entries=len(rebuilt))
        if segment.next_offset > log.start_offset and not log.segments_lock.locked():
            async with log.segments_lock:
                if not log.closed and log.swap_count == swap_count:
                    await self._repair(key, rebuilt)
        return rebuilt

    def _rebuild(self, segment_key: str, data: memoryview) -> Index:
        batches = segment_format.salvage(data)
        if not batches:
            raise DamagedObjectError(segment_key, "it holds no whole batch")
        rebuilt = index.rebuild(batches, self._interval_bytes)
        rebuilt.segment_bytes = len(data)
        return rebuilt

    async def _repair(self, key: str, rebuilt: Index) -> None:
        try:
            await self._store.put(key, [rebuilt.encode()], create=False)
        except OperatingError as error:
            logger.warning("index not written", key=key, error=str(error))

    def key(self, log: PartitionLog, base_offset: int) -> str:
        """The key of the index of the segment that begins at an offset."""
        return object_keys.index_key(self._namespace, log.directory, log.partition, base_offset)
