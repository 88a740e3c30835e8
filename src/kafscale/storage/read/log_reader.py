"""Reads logs: new records from the tail, older ones from segments by their indexes.

Readers get slices of whole batches, from the one that holds the requested offset, never above the
high watermark. Batches of segments are verified before they are returned: see `block`. Header and
footer of a segment are checked when they are read. A read ends before a damaged batch; one that
begins at it raises `DamagedRecordsError`.
`damaged_segments` decides whether it is read again first.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TypeVar

import msgspec

from kafscale.errors import (
    DamagedObjectError,
    DamagedRecordsError,
    ObjectNotFoundError,
    OperatingError,
)
from kafscale.observability.logging import get_logger
from kafscale.records import BatchView, batch
from kafscale.storage.counters import StorageCounters
from kafscale.storage.formats import object_keys
from kafscale.storage.formats import segment as segment_format
from kafscale.storage.formats.index import Index
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.segment_list import Segment
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.read.block import (
    BLOCK_BYTES,
    BatchPlace,
    Block,
    damaged_batch,
    first_offset,
    is_verified,
    pieces,
    verified_batches,
    verify,
)
from kafscale.storage.read.block_cache import BlockCache
from kafscale.storage.read.damaged_segments import DamagedSegments
from kafscale.storage.read.read_ahead import ReadAheadLimits, following_blocks
from kafscale.storage.read.segment_indexes import SegmentIndexes
from kafscale.storage.read.segment_transactions import SegmentTransactions

logger = get_logger(__name__)

Result = TypeVar("Result")


class _BatchRange(msgspec.Struct, frozen=True, gc=False):
    """The extent of batches in a segment, from their headers."""

    position: int
    end: int
    base_offset: int
    next_offset: int


class LogReader:
    """Reads logs; holds the caches that all logs share."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        blocks: BlockCache,
        *,
        indexes_bytes_max: int,
        read_ahead: ReadAheadLimits,
        index_interval_bytes: int,
        counters: StorageCounters,
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._blocks = blocks
        self._read_ahead_limits = read_ahead
        self._damaged = DamagedSegments(store, namespace, self.forget, counters)
        self._indexes = SegmentIndexes(
            store, namespace, bytes_max=indexes_bytes_max, interval_bytes=index_interval_bytes
        )
        self.index = self._indexes.get
        """The index of a segment."""
        self.keep_index = self._indexes.keep
        self.transactions = SegmentTransactions(self._indexes, self)
        self.aborted_transactions = self.transactions.find_aborted
        """The aborted transactions that overlap a range."""

    @property
    def cached_bytes(self) -> int:
        return self._blocks.size_bytes + self._indexes.size_bytes + self.transactions.size_bytes

    async def read(
        self,
        log: PartitionLog,
        offset: int,
        bytes_max: int,
        *,
        first: bool,
        end_offset: int | None = None,
    ) -> tuple[list[memoryview], int]:
        """Slices of whole batches from the one that holds the offset, and the offset after them.

        With `first`, the first batch may be larger than `bytes_max`. With an end offset,
        batches that reach it are left out.
        """
        log.check_readable(offset)
        slices: list[memoryview] = []
        while bytes_max > 0 and offset < log.high_watermark:
            if end_offset is not None and offset >= end_offset:
                break
            if log.closed or offset < log.start_offset:
                break  # Deleted while this reader waited for an earlier batch.
            if log.in_tail(offset):
                read_slices, next_offset = log.tail.read(
                    offset, bytes_max, first=first, end_offset=end_offset
                )
            else:
                read_segment = partial(
                    self._read_segment, log, offset, bytes_max, first=first, end_offset=end_offset
                )
                try:
                    read_slices, next_offset = await self.read_segments(log, read_segment)
                except DamagedRecordsError:
                    if slices:
                        break
                    raise
                except ObjectNotFoundError:
                    log.check_readable(offset)  # Retention may have deleted the segment.
                    raise
            if slices and read_slices and first_offset(read_slices) < offset:
                # The segment was replaced meanwhile; its batch repeats records of the one before.
                break
            offset = next_offset
            if not read_slices:
                break
            slices += read_slices
            bytes_max -= sum(map(len, read_slices))
            first = False
        return slices, offset

    async def read_segments(
        self, log: PartitionLog, operation: Callable[[], Awaitable[Result]]
    ) -> Result:
        """Run a read of segments; retry it if a swap began meanwhile, and once after damage."""
        is_second = False
        while True:
            while log.swap_finished is not None:
                await log.swap_finished.wait()
            log.check_open()
            swap_count = log.swap_count
            try:
                result = await operation()
            except OperatingError as error:
                if log.swap_count != swap_count:
                    continue
                if not isinstance(error, DamagedObjectError):
                    raise
                if is_second or not await self._damaged.refresh(log, error.key):
                    raise self._damaged.add(error) from error
                is_second = True
                continue
            if log.swap_count == swap_count:
                return result

    def is_cached(self, log: PartitionLog, offset: int) -> bool:
        """Whether a read from this offset starts without a request to the store."""
        if log.in_tail(offset) or not len(log.segments):
            return True
        segment = log.segments[log.segments.find(offset)]
        entries = self._indexes.cached(log, segment)
        return entries is not None and self._blocks.contains(
            self._key(log, segment), entries.positions[entries.find(offset)]
        )

    async def batches(self, log: PartitionLog, segment: Segment, position: int) -> list[BatchView]:
        """The batches of a segment from a position: about one block, but at least one batch."""
        key = self._key(log, segment)
        body_end = segment.size_bytes - segment_format.FOOTER_BYTES
        if position >= body_end:
            return []
        first = await self._header(key, position)
        stop = max(first.end, min(position + BLOCK_BYTES, body_end))
        blocks = await self._blocks.blocks(key, position, stop)
        place = BatchPlace(first.position, first.base_offset)
        return await asyncio.to_thread(verified_batches, key, blocks, place, stop)

    async def ends_at_next(self, log: PartitionLog, segment: Segment) -> bool:
        """Whether a segment ends where the next one begins, so that its index speaks of that place.

        It does not if a crash interrupted a swap and left some of the old segments.
        """
        return await self._stored_end(self._key(log, segment), segment) == segment.next_offset

    def forget(self, *prefixes: str) -> None:
        """Drop cached data of objects that are deleted or may have been replaced."""
        self._blocks.forget(*prefixes)
        self._indexes.forget(*prefixes)
        self.transactions.forget(*prefixes)

    def forget_partitions(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Drop cached data of partitions, by topic directory, that others may have changed."""
        self.forget(
            *(object_keys.partition_prefix(self._namespace, *partition) for partition in partitions)
        )

    def close(self) -> None:
        self._blocks.close()
        self._indexes.clear()
        self.transactions.clear()

    # --- segments -----------------------------------------------------------------------------

    async def _read_segment(
        self, log: PartitionLog, offset: int, bytes_max: int, *, first: bool, end_offset: int | None
    ) -> tuple[list[memoryview], int]:
        if not len(log.segments):
            # Damage has left a gap before the tail.
            return log.tail.read(offset, bytes_max, first=first, end_offset=end_offset)
        segment = log.segments[log.segments.find(offset)]
        key = self._key(log, segment)
        entries = await self.index(log, segment)
        body_end = segment.size_bytes - segment_format.FOOTER_BYTES
        start = await self._seek(key, entries, offset, body_end)
        if start is None:
            # Damage has left a gap after this segment; continue with what follows it.
            return await self._read_after_gap(
                log, segment, bytes_max, first=first, end_offset=end_offset
            )
        if start.end - start.position > bytes_max and not first:
            return [], offset
        if end_offset is not None and start.next_offset > end_offset:
            return [], offset  # A batch that took over the offsets of dropped ones before it.
        limit = start.position + bytes_max
        ends_within = end_offset is not None and end_offset < segment.next_offset
        if ends_within:
            assert end_offset is not None
            stop = await self._last_below(key, entries, start, limit, end_offset)
        else:
            stop = await self._stop(key, entries, start, limit, body_end)
            ends_within = await self._extends_past_next(key, segment, stop)
            if ends_within:
                stop = await self._last_below(key, entries, start, limit, segment.next_offset)
        blocks = await self._blocks.blocks(key, start.position, stop.end)
        if not blocks[0].start:
            _check_header(key, blocks[0], segment)
        end = await self._verify(key, blocks, start, stop)
        self._read_ahead(log, segment, end.position)
        slices = pieces(blocks, start.position, end.position)
        is_exact = ends_within or end.position < body_end
        return slices, end.offset if is_exact else segment.next_offset

    @staticmethod
    async def _verify(
        key: str, blocks: list[Block], start: _BatchRange, stop: _BatchRange
    ) -> BatchPlace:
        """The end of the batches, or the place of the first damaged one; raise if all are."""
        if is_verified(blocks, start.position, stop.end):
            return BatchPlace(stop.end, stop.next_offset)
        place = BatchPlace(start.position, start.base_offset)
        verified = await asyncio.to_thread(verify, blocks, place, stop.end)
        if verified.position >= stop.end:
            return BatchPlace(stop.end, stop.next_offset)
        if verified.position == start.position:
            raise damaged_batch(key, place)
        return verified

    async def _read_after_gap(
        self,
        log: PartitionLog,
        segment: Segment,
        bytes_max: int,
        *,
        first: bool,
        end_offset: int | None,
    ) -> tuple[list[memoryview], int]:
        logger.error(
            "offsets missing", topic=log.topic, partition=log.partition, before=segment.next_offset
        )
        offset = segment.next_offset
        if end_offset is not None and offset >= end_offset:
            return [], offset
        if offset >= log.segments.end_offset:
            return log.tail.read(offset, bytes_max, first=first, end_offset=end_offset)
        return await self._read_segment(log, offset, bytes_max, first=first, end_offset=end_offset)

    async def _seek(
        self, key: str, entries: Index, offset: int, body_end: int
    ) -> _BatchRange | None:
        """The batch that holds the offset, searched from an index entry."""
        entry = entries.find(offset)
        position, expected_offset = entries.positions[entry], entries.offsets[entry]
        while position < body_end:
            candidate = await self._header(key, position, expected_offset)
            if offset < candidate.next_offset:
                return candidate
            position, expected_offset = candidate.end, candidate.next_offset
        return None

    async def _stop(
        self, key: str, entries: Index, start: _BatchRange, limit: int, body_end: int
    ) -> _BatchRange:
        """The last batch that ends below the limit, but at least the first one."""
        if limit >= body_end:
            return msgspec.structs.replace(start, end=body_end)
        last = start
        entry = bisect_right(entries.positions, limit) - 1
        if entries.positions[entry] > last.end:
            last = msgspec.structs.replace(
                start, end=entries.positions[entry], next_offset=entries.offsets[entry]
            )
        while last.end < body_end:
            candidate = await self._header(key, last.end, last.next_offset)
            if candidate.end > limit:
                break
            last = candidate
        return last

    async def _extends_past_next(self, key: str, segment: Segment, stop: _BatchRange) -> bool:
        """Whether a segment holds offsets of the next one.

        It does if a crash interrupted a swap and left some of the old segments.
        """
        body_end = segment.size_bytes - segment_format.FOOTER_BYTES
        if stop.end < body_end:
            return stop.next_offset > segment.next_offset
        return await self._stored_end(key, segment) > segment.next_offset

    async def _stored_end(self, key: str, segment: Segment) -> int:
        """The offset after the last record, as the footer says."""
        body_end = segment.size_bytes - segment_format.FOOTER_BYTES
        if body_end < segment_format.HEADER_BYTES:
            raise DamagedObjectError(key, f"it has only {segment.size_bytes} bytes")
        raw = await self._blocks.contiguous(key, body_end, segment.size_bytes)
        return segment_format.decode_footer(key, raw).last_offset + 1

    async def _last_below(
        self, key: str, entries: Index, start: _BatchRange, limit: int, next_offset: int
    ) -> _BatchRange:
        """The last batch below an offset that ends below the limit, but at least the first one."""
        last = start
        entry = bisect_left(entries.offsets, next_offset) - 1
        while entry >= 0 and entries.positions[entry] > limit:
            entry -= 1
        if entry >= 0 and entries.positions[entry] > last.end:
            last = msgspec.structs.replace(
                start, end=entries.positions[entry], next_offset=entries.offsets[entry]
            )
        while last.next_offset < next_offset:
            candidate = await self._header(key, last.end, last.next_offset)
            if candidate.end > limit:
                break
            last = candidate
        return last

    async def _header(
        self, key: str, position: int, expected_offset: int | None = None
    ) -> _BatchRange:
        raw = await self._blocks.contiguous(key, position, position + batch.HEADER_BYTES)
        base_offset, length, _, magic, _, _, last_offset_delta, *_ = batch.HEADER.unpack(raw)
        end = position + batch.LENGTH_OVERHEAD_BYTES + length
        if (
            magic != batch.MAGIC
            or end < position + batch.HEADER_BYTES
            or last_offset_delta < 0
            or expected_offset not in {None, base_offset}
        ):
            raise DamagedObjectError(key, f"no batch at position {position}")
        return _BatchRange(position, end, base_offset, base_offset + last_offset_delta + 1)

    def _read_ahead(self, log: PartitionLog, segment: Segment, position: int) -> None:
        """Prefetch what follows, in this segment and the next ones."""
        limits = self._read_ahead_limits
        for following, block in following_blocks(log.segments, segment, position, limits):
            self._blocks.prefetch(self._key(log, following), block)
            if not block:
                self._indexes.prefetch(log, following)

    def _key(self, log: PartitionLog, segment: Segment) -> str:
        return object_keys.segment_key(
            self._namespace, log.directory, log.partition, segment.base_offset
        )


def _check_header(key: str, block: Block, segment: Segment) -> None:
    header = segment_format.decode_header(key, block.data)
    if header.base_offset != segment.base_offset:
        raise DamagedObjectError(key, f"its header has base offset {header.base_offset}")
