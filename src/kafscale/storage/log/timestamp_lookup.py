"""Find offsets by timestamp, for ListOffsets; Spark searches logs with the same functions.

Timestamps need not ascend within a log, but the largest timestamp up to the end of each segment
does, and indexes store it: a binary search finds the segment. If an index lacks it (upstream
KafScale wrote the index, or it was rebuilt), all segments are scanned.

The records of a batch are read one by one, and a few kilobytes may decompress to a million records.
So only short, uncompressed batches are read on the event loop, and others in one thread.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

import msgspec

from kafscale.records import BatchView, Codec, TimestampType, iterate
from kafscale.storage.formats import segment as segment_format
from kafscale.storage.formats.index import Index
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.read.log_reader import LogReader

Result = TypeVar("Result")

RECORDS_PER_TURN: Final = 500
"""How many records are read in one turn on the event loop: about 1 ms."""

_THREAD: Final = ThreadPoolExecutor(1, thread_name_prefix="kafscale-timestamps")


class TimedOffset(msgspec.Struct, frozen=True, gc=False):
    """The offset, timestamp and leader epoch of a record."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


async def first_segment(
    count: int, read_index: Callable[[int], Awaitable[Index | None]], timestamp_ms: int
) -> int | None:
    """Return the number of the first segment that can hold a record at or after a timestamp.

    It is `count` if there is none, and None if an index on the way is not known, or does not know
    the largest timestamp of the log. `read_index` reads the index of the segment with a number.
    """
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        entries = await read_index(middle)
        reached_ms = None if entries is None else entries.log_max_timestamp_ms
        if reached_ms is None:
            return None
        if reached_ms >= timestamp_ms:
            high = middle
        else:
            low = middle + 1
    return low


def first_record(batch: BatchView, timestamp_ms: int, start_offset: int) -> TimedOffset | None:
    """Return the first record of a batch at or after a timestamp and an offset."""
    if batch.max_timestamp_ms < timestamp_ms:
        return None
    for record_offset, record_ms in _times(batch, start_offset):
        if record_ms >= timestamp_ms and record_offset >= start_offset:
            return TimedOffset(record_offset, record_ms, batch.leader_epoch)
    return None


async def offset_for_timestamp(
    reader: LogReader, log: PartitionLog, timestamp_ms: int
) -> TimedOffset | None:
    """Return the first record at or after a timestamp; None if all are older."""
    return await reader.read_segments(
        log, partial(_offset_for_timestamp, reader, log, timestamp_ms)
    )


async def offset_of_max_timestamp(reader: LogReader, log: PartitionLog) -> TimedOffset | None:
    """Return the first record with the largest timestamp; None if the log is empty."""
    return await reader.read_segments(log, partial(_offset_of_max_timestamp, reader, log))


async def _offset_for_timestamp(
    reader: LogReader, log: PartitionLog, timestamp_ms: int
) -> TimedOffset | None:
    async for batch in _candidates(reader, log, timestamp_ms):
        find = partial(first_record, batch, timestamp_ms, log.start_offset)
        is_older = batch.max_timestamp_ms < timestamp_ms
        if not is_older and (record := await _read_records(batch, find)) is not None:
            return record
    return None


async def _offset_of_max_timestamp(reader: LogReader, log: PartitionLog) -> TimedOffset | None:
    max_timestamp_ms = max((run.max_timestamp_ms for run in log.tail.runs), default=-1)
    if len(log.segments):
        last = await reader.index(log, log.segments[-1])
        if last.log_max_timestamp_ms is not None:
            newest = await _offset_for_timestamp(
                reader, log, max(max_timestamp_ms, last.log_max_timestamp_ms)
            )
            if newest is not None:
                return newest
        # That record has been deleted meanwhile, or the index does not know the timestamp.
        max_timestamp_ms = await _max_timestamp_ms(reader, log)
    return await _offset_for_timestamp(reader, log, max_timestamp_ms)


async def _max_timestamp_ms(reader: LogReader, log: PartitionLog) -> int:
    """The largest timestamp of all records at or above the log start offset."""
    start_offset = log.start_offset
    max_timestamp_ms = -1
    for segment in list(log.segments):
        if segment.next_offset <= start_offset:
            continue
        position = segment_format.HEADER_BYTES
        if segment.base_offset >= start_offset:
            reached_ms = (await reader.index(log, segment)).max_timestamp_ms
            if reached_ms is not None:
                max_timestamp_ms = max(max_timestamp_ms, reached_ms)
                continue
        while batches := await reader.batches(log, segment, position):
            for batch in batches:
                position += len(batch)
                find = partial(_max_timestamp_of, batch, start_offset)
                max_timestamp_ms = max(max_timestamp_ms, await _read_records(batch, find))
    for run in list(log.tail.runs):
        for batch in run.batches(start_offset):
            find = partial(_max_timestamp_of, batch, start_offset)
            max_timestamp_ms = max(max_timestamp_ms, await _read_records(batch, find))
    return max_timestamp_ms


def _max_timestamp_of(batch: BatchView, start_offset: int) -> int:
    times = _times(batch, start_offset)
    return max((record_ms for offset, record_ms in times if offset >= start_offset), default=-1)


async def _read_records(batch: BatchView, function: Callable[[], Result]) -> Result:
    """Call a function that reads the records of a batch; in a thread, if it may take long."""
    if batch.codec is Codec.NONE and batch.count <= RECORDS_PER_TURN:
        return function()
    return await asyncio.get_running_loop().run_in_executor(_THREAD, function)


async def _candidates(
    reader: LogReader, log: PartitionLog, timestamp_ms: int
) -> AsyncIterator[BatchView]:
    """Batches in offset order, including all that reach the timestamp."""
    number = await _first_segment(reader, log, timestamp_ms)
    while number < len(log.segments):
        segment = log.segments[number]
        entries = await reader.index(log, segment)
        entry = entries.find_time(timestamp_ms)
        position = None if entry is None else entries.positions[entry]
        while position is not None:
            batches = await reader.batches(log, segment, position)
            for batch in batches:
                yield batch
                position += len(batch)
            if not batches:
                position = None
        if segment.next_offset >= log.segments.end_offset:
            break
        number = log.segments.find(segment.next_offset)
    end_offset = log.segments.end_offset
    for run in list(log.tail.runs):
        if run.last_offset >= end_offset and run.max_timestamp_ms >= timestamp_ms:
            for batch in run.batches(end_offset):
                yield batch


async def _first_segment(reader: LogReader, log: PartitionLog, timestamp_ms: int) -> int:
    """The number of the segment to start at: the first one if the list of segments changes."""
    count = len(log.segments)

    async def read_index(number: int) -> Index | None:
        entries = await reader.index(log, log.segments[number])
        return entries if len(log.segments) == count else None

    return await first_segment(count, read_index, timestamp_ms) or 0


def _times(batch: BatchView, start_offset: int) -> Iterable[tuple[int, int]]:
    """The offset and timestamp of each record; those before the start offset may be left out."""
    is_gapless = batch.count == batch.last_offset_delta + 1  # False after compaction.
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME and is_gapless:
        # All have the same timestamp, so the first one stands for them.
        first_offset = max(batch.base_offset, start_offset)
        is_before_end = first_offset < batch.next_offset
        return [(first_offset, batch.max_timestamp_ms)] if is_before_end else []
    return ((record.offset, record.timestamp_ms) for record in iterate(batch))
