"""`Compactor`: compacts one log of this broker.

    note      the latest offsets of the keys in the dirty segments, as far as memory allows
    add       all segments up to there, in log order, grouped into segments of the usual size
    replace   each group by its new segment, as soon as that is complete
    commit    the clean end, to the checkpoint of the topic

Invariants: segments are replaced in log order, so a record is gone before the tombstone that
deletes it is. A run ends at the first failure, and then changes no checkpoint. If another job has
replaced segments since the run began, the run ends, because what it has read may be older.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, TypeVar

import msgspec

from kafscale.aio.token_bucket import TokenBucket
from kafscale.errors import OperatingError
from kafscale.records.batch_rewrite import HORIZON_MS_MAX, SPAN_MAX
from kafscale.storage.compaction.checkpoint import write_checkpoint
from kafscale.storage.compaction.messages import (
    Add,
    Added,
    Begin,
    Command,
    Finish,
    Finished,
    Message,
    Note,
    Noted,
)
from kafscale.storage.compaction.rules import CompactionRules
from kafscale.storage.compaction.worker_process import Worker
from kafscale.storage.counters import StorageCounters
from kafscale.storage.formats import object_keys
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.segment_list import Segment
from kafscale.storage.log.state.transactions import AbortedTransaction
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.segments.staging import BuiltSegment
from kafscale.storage.segments.swap import SwapResult
from kafscale.text.units import MIB

CHUNK_BYTES: Final = 8 * MIB
"""How much of a segment is in the broker's memory at a time."""

SOURCE_BYTES_MAX: Final = 512 * MIB
"""Larger segments are left to the Spark job; the memory of the process is about twice as much."""

TARGET_BYTES_MAX: Final = 128 * MIB
"""The largest new segment, which is in the broker's memory while it is installed."""

SEGMENTS_PER_TURN: Final = 1000
"""A log may have hundreds of thousands of segments."""

WAIT_SECONDS_MAX: Final = 600.0
"""The longest pause for the rate."""

NONE: Final = -1
"""In place of an offset: there is no group."""

_Reply = TypeVar("_Reply", bound=Message)

Swap = Callable[[PartitionLog, BuiltSegment], Awaitable[SwapResult]]
"""Replaces segments of a log."""

AbortedTransactions = Callable[[PartitionLog, int, int], Awaitable[list[AbortedTransaction]]]
"""Returns the aborted transactions that overlap a range of offsets."""


class Dirty(msgspec.Struct, frozen=True):
    """What is to be compacted of a log."""

    clean_end: int
    cleanable_end: int
    """The end of the last segment that may be compacted."""
    ratio: float
    """The share of the cleanable bytes that is dirty."""


class CompactionResult(msgspec.Struct):
    """What one run has done."""

    clean_end: int
    segments_before: int = 0
    segments_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    records_removed: int = 0


class Compactor:
    """Compacts logs, one at a time."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        worker: Worker,
        *,
        swap: Swap,
        aborted: AbortedTransactions,
        memory_bytes_max: int,
        bytes_per_second: int,
        index_interval_bytes: int,
        clock: Callable[[], int],
        counters: StorageCounters,
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._worker = worker
        self._swap = swap
        self._aborted = aborted
        self._memory_bytes_max = memory_bytes_max
        self._index_interval_bytes = index_interval_bytes
        self._rate = TokenBucket(bytes_per_second, wait_seconds_max=WAIT_SECONDS_MAX)
        self._clock = clock
        self._counters = counters.compaction

    async def compact(
        self, log: PartitionLog, rules: CompactionRules, dirty: Dirty
    ) -> CompactionResult:
        """Compact a log, as far as memory allows."""
        swap_count = log.swap_count
        sources = await _sources(log, dirty.cleanable_end)
        now_ms = self._clock()
        horizon_ms = min(now_ms + rules.delete_retention_ms, HORIZON_MS_MAX)
        aborted = await self._aborted(log, log.start_offset, dirty.cleanable_end)
        begin = Begin(
            self._memory_bytes_max, now_ms, horizon_ms, self._index_interval_bytes, aborted
        )
        await self._worker.request(begin)
        noted_end = await self._note(log, sources, dirty.clean_end)
        result = CompactionResult(noted_end)
        groups = _Groups(self, log, swap_count, result)
        for source in sources:
            is_needed = source.base_offset < max(noted_end, groups.end_offset)
            if not is_needed or not await groups.add(source):
                break
        await groups.finish()
        result.clean_end = min(noted_end, groups.end_offset)
        await write_checkpoint(
            self._store, self._namespace, log.topic, log.topic_id, {log.partition: result.clean_end}
        )
        return result

    async def _note(self, log: PartitionLog, sources: Sequence[Segment], clean_end: int) -> int:
        """Note the latest offsets of keys; return the offset before which all are noted."""
        noted_end = clean_end
        for source in sources:
            if source.next_offset > clean_end:
                key = self._key(log, source)
                start_offset = max(source.base_offset, clean_end)
                command = Note(key, start_offset, source.next_offset)
                noted, _ = await self.send(command, Noted, log, source)
                noted_end = noted.end_offset
                if noted.is_full:
                    break
        return noted_end

    async def send(
        self, command: Command, expected: type[_Reply], log: PartitionLog, source: Segment | None
    ) -> tuple[_Reply, memoryview]:
        """Send a command, with the content of a segment."""
        log.check_open()
        if source is None:
            reply, data = await self._worker.request(command)
        else:
            key = self._key(log, source)
            chunks = self._read(key, source.size_bytes)
            try:
                reply, data = await self._worker.request(command, chunks, source.size_bytes)
            except OperatingError:
                # A write of a former owner, or of a swap that had failed, may have replaced it
                # late. If so, the next try reads it.
                log.segments.resize(source.base_offset, (await self._store.head(key)).size_bytes)
                raise
        assert isinstance(reply, expected)
        return reply, data

    async def replace(self, log: PartitionLog, built: BuiltSegment) -> SwapResult:
        await self._wait(built.size_bytes)
        self._counters.bytes_written += built.size_bytes
        return await self._swap(log, built)

    def add_command(self, log: PartitionLog, source: Segment) -> Add:
        return Add(self._key(log, source), source.base_offset, source.next_offset)

    async def _read(self, key: str, size_bytes: int) -> AsyncIterator[memoryview]:
        for start in range(0, size_bytes, CHUNK_BYTES):
            stop = min(start + CHUNK_BYTES, size_bytes)
            chunk = await self._store.get_range(key, start, stop)
            if len(chunk) != stop - start:
                raise OperatingError(f"{key} was replaced while it was read")
            self._counters.bytes_read += len(chunk)
            yield chunk
            await self._wait(len(chunk))

    async def _wait(self, size_bytes: int) -> None:
        """Wait until reading or writing that much is within the rate."""
        seconds = self._rate.consume(size_bytes, asyncio.get_running_loop().time())
        if seconds:
            await asyncio.sleep(seconds)

    def _key(self, log: PartitionLog, segment: Segment) -> str:
        return object_keys.segment_key(
            self._namespace, log.directory, log.partition, segment.base_offset
        )


class _Groups:
    """Groups the segments of a log, and replaces each group by a new segment."""

    def __init__(
        self, compactor: Compactor, log: PartitionLog, swap_count: int, result: CompactionResult
    ) -> None:
        self._compactor = compactor
        self._log = log
        self._swap_count = swap_count
        self._result = result
        self._bytes_max = min(log.settings.segment_bytes, TARGET_BYTES_MAX)
        self._end_offset = NONE  # Of the segments in the group.
        self._base_offset = NONE
        self._output = Added(0, has_records=False, end_offset=NONE)
        self.end_offset = NONE
        """The end of what was added; where it fits into no group, the end of the last one."""

    async def add(self, source: Segment) -> bool:
        """Add a segment; False if it fits into no group, so that compaction has to end here."""
        if self._base_offset != NONE:
            is_span_full = source.next_offset - self._base_offset > SPAN_MAX
            is_full = self._output.size_bytes + source.size_bytes > self._bytes_max
            is_complete = self._output.has_records and self._output.end_offset <= source.base_offset
            if is_complete and (is_full or is_span_full):
                await self._install()
            elif is_span_full:
                self._drop()
                return False
        if self._base_offset == NONE:
            if source.next_offset - source.base_offset > SPAN_MAX:
                return False
            self._base_offset = source.base_offset
        command = self._compactor.add_command(self._log, source)
        self._output, _ = await self._compactor.send(command, Added, self._log, source)
        self._end_offset = source.next_offset
        self.end_offset = self._output.end_offset
        return True

    async def finish(self) -> None:
        """Install the last group, unless segments that belong to it may not be compacted yet."""
        if self._base_offset != NONE:
            if self._output.end_offset > self._end_offset:
                self._drop()
            else:
                await self._install()

    def _drop(self) -> None:
        self.end_offset, self._base_offset = self._base_offset, NONE

    async def _install(self) -> None:
        """Replace the segments of the group, if that changes anything."""
        self._base_offset = NONE
        finished, data = await self._compactor.send(Finish(), Finished, self._log, None)
        if not data:
            return
        size_bytes = len(data) - finished.index_bytes
        built = BuiltSegment(self._log, data[:size_bytes], data[size_bytes:], self._swap_count)
        swapped = await self._compactor.replace(self._log, built)
        self._swap_count += 1
        result = self._result
        result.segments_before += swapped.count_before
        result.segments_after += swapped.count_after
        result.bytes_before += swapped.bytes_before
        result.bytes_after += swapped.bytes_after
        result.records_removed += finished.count_before - finished.count_after


async def _sources(log: PartitionLog, end_offset: int) -> list[Segment]:
    """The segments from the log start to an offset, which is the end of one of them."""
    sources: list[Segment] = []
    offset = log.start_offset
    while offset < end_offset:
        some = log.segments.some(log.segments.find(offset), SEGMENTS_PER_TURN)
        sources += (each for each in some if each.base_offset < end_offset)
        if (largest := max((each.size_bytes for each in some), default=0)) > SOURCE_BYTES_MAX:
            raise OperatingError(
                f"{log.topic}/{log.partition} has a segment of {largest} bytes, more than a broker"
                f" compacts ({SOURCE_BYTES_MAX}): run the Spark job `compact`"
            )
        if not some or some[-1].next_offset <= offset:
            break  # Segments were deleted meanwhile.
        offset = some[-1].next_offset
        await asyncio.sleep(0)
    return sources
