"""Reading a log: newest records from the tail, older ones from segments by way of their indexes.

Slices go out as they lie: whole batches, from the one that holds the offset on, never above the
high watermark. What is read from a segment is checked where it begins: a batch that is not the one
that the index promised is damage, and is said to be.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TypeVar

import msgspec

from kafscale.errors import DamagedObjectError, ObjectNotFoundError, OperatingError
from kafscale.observability.logging import get_logger
from kafscale.records import BatchView, batch
from kafscale.storage.counters import Statistics
from kafscale.storage.formats import index, object_keys, segment
from kafscale.storage.formats.index import Index
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.segment_list import Segment
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.read.block_cache import BLOCK_BYTES, Blocks
from kafscale.storage.read.loading_cache import LoadingCache

log = get_logger(__name__)

Result = TypeVar("Result")


class _Found(msgspec.Struct, frozen=True, gc=False):
    """A batch in a segment, as far as its header tells."""

    position: int
    end: int
    next_offset: int


class LogReader:
    """Reads logs; holds the caches that all of them share."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        blocks: Blocks,
        *,
        indexes_bytes_max: int,
        read_ahead: int,
        index_interval_bytes: int,
        statistics: Statistics,
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._blocks = blocks
        self._read_ahead = read_ahead
        self._index_interval_bytes = index_interval_bytes
        self._statistics = statistics
        self._indexes: LoadingCache[str, Index] = LoadingCache(
            indexes_bytes_max, lambda found: found.cost_bytes
        )

    @property
    def cached_bytes(self) -> int:
        return self._blocks.size_bytes + self._indexes.size_bytes

    async def read(
        self, partition: PartitionLog, offset: int, bytes_max: int, *, first: bool
    ) -> tuple[list[memoryview], int]:
        """Slices of whole batches from the one that holds the offset, and the offset after them.

        `first` says that the first batch may be larger than `bytes_max`.
        """
        partition.check_readable(offset)
        slices: list[memoryview] = []
        while bytes_max > 0 and offset < partition.high_watermark:
            if partition.closed or offset < partition.start_offset:
                break  # It was deleted while this reader waited for what comes before.
            if partition.in_tail(offset):
                self._statistics.reads_from_tail += 1
                found, offset = partition.tail.read(offset, bytes_max, first=first)
            else:
                self._statistics.reads_from_segments += 1
                try:
                    found, offset = await self.stable(
                        partition,
                        partial(self._read_segment, partition, offset, bytes_max, first=first),
                    )
                except ObjectNotFoundError:
                    partition.check_readable(offset)  # Retention may have overtaken this reader.
                    raise
            if not found:
                break
            slices += found
            bytes_max -= sum(map(len, found))
            first = False
        return slices, offset

    async def stable(
        self, partition: PartitionLog, look: Callable[[], Awaitable[Result]]
    ) -> Result:
        """Look into segments that may be replaced: before or after, but never while they are."""
        while True:
            while partition.replacing is not None:
                await partition.replacing.wait()
            partition.check_open()
            generation = partition.generation
            try:
                found = await look()
            except OperatingError:
                if partition.generation == generation:
                    raise
                continue
            if partition.generation == generation:
                return found

    def is_cached(self, partition: PartitionLog, offset: int) -> bool:
        """Whether a read from this offset begins without a request to the store."""
        if partition.in_tail(offset):
            return True
        found = partition.segments[partition.segments.find(offset)]
        entries = self._indexes.get(self._index_key(partition, found))
        return entries is not None and self._blocks.holds(
            self._key(partition, found), entries.positions[entries.find(offset)]
        )

    async def index(self, partition: PartitionLog, found: Segment) -> Index:
        """The index of a segment."""
        key = self._index_key(partition, found)
        cached = self._indexes.get(key)
        if cached is not None:
            return cached
        return await self._indexes.load(key, lambda: self._load_index(partition, found))

    async def batches(
        self, partition: PartitionLog, found: Segment, position: int
    ) -> list[BatchView]:
        """The batches of a segment from a position on: about a block of them, but at least one."""
        key = self._key(partition, found)
        body_end = found.size_bytes - segment.FOOTER_BYTES
        batches: list[BatchView] = []
        end = position
        while end < body_end and end - position < BLOCK_BYTES:
            header = await self._header(key, end)
            batches.append(BatchView(await self._blocks.contiguous(key, end, header.end)))
            end = header.end
        return batches

    def forget(self, *prefixes: str) -> None:
        """Drop what is cached of objects that are deleted, or may have been replaced."""
        self._blocks.forget(*prefixes)
        self._indexes.discard(lambda key: key.startswith(prefixes))

    def forget_partitions(self, places: Iterable[tuple[str, int]]) -> None:
        """Drop what is cached of partitions, which another owner may have changed meanwhile."""
        self.forget(*(object_keys.partition_prefix(self._namespace, *place) for place in places))

    def close(self) -> None:
        self._blocks.close()
        self._indexes.clear()

    # --- segments -----------------------------------------------------------------------------

    async def _read_segment(
        self, partition: PartitionLog, offset: int, bytes_max: int, *, first: bool
    ) -> tuple[list[memoryview], int]:
        if not len(partition.segments):
            # Damage has left a hole before the tail.
            return partition.tail.read(offset, bytes_max, first=first)
        found = partition.segments[partition.segments.find(offset)]
        key = self._key(partition, found)
        entries = await self.index(partition, found)
        body_end = found.size_bytes - segment.FOOTER_BYTES
        start = await self._seek(key, entries.positions[entries.find(offset)], offset, body_end)
        if start is None:
            # Damage has left a hole after this segment; readers get on with what follows it.
            return await self._read_after_hole(partition, found, bytes_max, first=first)
        if start.end - start.position > bytes_max and not first:
            return [], offset
        limit = start.position + bytes_max
        stop = await self._stop(key, entries, start, limit, body_end)
        if await self._goes_beyond(key, found, stop):
            stop = await self._last_below(key, entries, start, limit, found.next_offset)
        slices = await self._blocks.slices(key, start.position, stop.end)
        self._look_ahead(partition, found, stop.end)
        return slices, stop.next_offset if stop.end < body_end else found.next_offset

    async def _read_after_hole(
        self, partition: PartitionLog, found: Segment, bytes_max: int, *, first: bool
    ) -> tuple[list[memoryview], int]:
        log.error(
            "offsets missing",
            topic=partition.topic,
            partition=partition.partition,
            before=found.next_offset,
        )
        if found.next_offset >= partition.segments.end_offset:
            return partition.tail.read(found.next_offset, bytes_max, first=first)
        return await self._read_segment(partition, found.next_offset, bytes_max, first=first)

    async def _seek(self, key: str, position: int, offset: int, body_end: int) -> _Found | None:
        """The batch that holds the offset, looked for from an entry of the index on."""
        while position < body_end:
            found = await self._header(key, position)
            if offset < found.next_offset:
                return found
            position = found.end
        return None

    async def _stop(
        self, key: str, entries: Index, start: _Found, limit: int, body_end: int
    ) -> _Found:
        """The last batch that ends below the limit, but at least the first one."""
        if limit >= body_end:
            return _Found(start.position, body_end, start.next_offset)
        last = start
        entry = bisect_right(entries.positions, limit) - 1
        if entries.positions[entry] > last.end:
            last = _Found(start.position, entries.positions[entry], entries.offsets[entry])
        while last.end < body_end:
            found = await self._header(key, last.end)
            if found.end > limit:
                break
            last = found
        return last

    async def _goes_beyond(self, key: str, found: Segment, stop: _Found) -> bool:
        """Whether a segment holds more than up to where the next one begins.

        It does where a crash has left some of the segments that others had replaced.
        """
        body_end = found.size_bytes - segment.FOOTER_BYTES
        if stop.end < body_end:
            return stop.next_offset > found.next_offset
        raw = await self._blocks.contiguous(key, body_end, found.size_bytes)
        try:
            return segment.decode_footer(key, raw).last_offset >= found.next_offset
        except DamagedObjectError:
            return False

    async def _last_below(
        self, key: str, entries: Index, start: _Found, limit: int, next_offset: int
    ) -> _Found:
        """The last batch below an offset that ends below the limit, but at least the first one."""
        last = start
        entry = bisect_left(entries.offsets, next_offset) - 1
        while entry >= 0 and entries.positions[entry] > limit:
            entry -= 1
        if entry >= 0 and entries.positions[entry] > last.end:
            last = _Found(start.position, entries.positions[entry], entries.offsets[entry])
        while last.next_offset < next_offset:
            found = await self._header(key, last.end)
            if found.end > limit:
                break
            last = found
        return last

    async def _header(self, key: str, position: int) -> _Found:
        raw = await self._blocks.contiguous(key, position, position + batch.HEADER_BYTES)
        base_offset, length, _, magic, _, _, last_offset_delta, *_ = batch.HEADER.unpack(raw)
        end = position + batch.LENGTH_OVERHEAD_BYTES + length
        if magic != batch.MAGIC or end < position + batch.HEADER_BYTES:
            raise DamagedObjectError(key, f"there is no batch at {position}")
        return _Found(position, end, base_offset + last_offset_delta + 1)

    def _look_ahead(self, partition: PartitionLog, found: Segment, position: int) -> None:
        """Begin to fetch the blocks that come next, in this segment and those that follow."""
        segments = partition.segments
        number = segments.find(found.base_offset)
        block = position // BLOCK_BYTES
        for _ in range(self._read_ahead):
            block += 1
            if block * BLOCK_BYTES >= found.size_bytes:
                number, block = number + 1, 0
                if number >= len(segments):
                    break
                found = segments[number]
            self._blocks.expect(self._key(partition, found), block)

    async def _load_index(self, partition: PartitionLog, found: Segment) -> Index:
        """The index as it is stored, or, where it is lost or torn, made anew from the segment."""
        key = self._index_key(partition, found)
        generation = partition.generation
        try:
            return index.decode(key, await self._store.get(key))
        except (ObjectNotFoundError, DamagedObjectError) as error:
            reason = str(error)
        segment_key = self._key(partition, found)
        data = await self._store.get(segment_key)
        batches = await asyncio.to_thread(segment.salvage, data)
        if not batches:
            raise DamagedObjectError(segment_key, "it holds no whole batch")
        rebuilt = index.rebuild(batches, self._index_interval_bytes)
        log.warning("index rebuilt", key=key, reason=reason, entries=len(rebuilt))
        if found.next_offset > partition.start_offset and not partition.pruning.locked():
            async with partition.pruning:
                if not partition.closed and partition.generation == generation:
                    await self._repair_index(key, rebuilt)
        return rebuilt

    async def _repair_index(self, key: str, rebuilt: Index) -> None:
        try:
            await self._store.put(key, [rebuilt.encode()], create=False)
        except OperatingError as error:
            log.warning("index not written", key=key, error=str(error))

    def _index_key(self, partition: PartitionLog, found: Segment) -> str:
        return object_keys.index_key(
            self._namespace, partition.topic, partition.partition, found.base_offset
        )

    def _key(self, partition: PartitionLog, found: Segment) -> str:
        return object_keys.segment_key(
            self._namespace, partition.topic, partition.partition, found.base_offset
        )
