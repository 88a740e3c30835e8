"""Which offset belongs to a time: the first record at or after it, and the newest of all.

Producers' times need not ascend, but the greatest time of a log up to the end of each segment does,
and indexes keep it: so the segment is found by binary search, however many there are. Where an
index does not know (upstream wrote it, or it was rebuilt), segments are looked at one by one.
"""

from collections.abc import AsyncIterator, Iterable
from functools import partial

import msgspec

from kafscale.records import BatchView, TimestampType, iterate
from kafscale.storage.formats import segment
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.read.log_reader import LogReader


class TimedOffset(msgspec.Struct, frozen=True, gc=False):
    """A record's offset, time, and the epoch of the leader that took it."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


async def first_since(
    reader: LogReader, partition: PartitionLog, timestamp_ms: int
) -> TimedOffset | None:
    """The first record at or after a time; None if all are older."""
    return await reader.stable(partition, partial(_first_since, reader, partition, timestamp_ms))


async def newest(reader: LogReader, partition: PartitionLog) -> TimedOffset | None:
    """The first record that has the greatest time of all; None if there are no records."""
    return await reader.stable(partition, partial(_newest, reader, partition))


async def _first_since(
    reader: LogReader, partition: PartitionLog, timestamp_ms: int
) -> TimedOffset | None:
    async for batch in _candidates(reader, partition, timestamp_ms):
        if batch.max_timestamp_ms < timestamp_ms:
            continue
        for record_offset, record_ms in _times(batch):
            if record_ms >= timestamp_ms and record_offset >= partition.start_offset:
                return TimedOffset(record_offset, record_ms, batch.leader_epoch)
    return None


async def _newest(reader: LogReader, partition: PartitionLog) -> TimedOffset | None:
    greatest_ms = max((run.max_timestamp_ms for run in partition.tail.runs), default=-1)
    if len(partition.segments):
        last = await reader.index(partition, partition.segments[-1])
        if last.log_max_timestamp_ms is not None:
            found = await _first_since(
                reader, partition, max(greatest_ms, last.log_max_timestamp_ms)
            )
            if found is not None:
                return found
        # The newest record has been deleted meanwhile, or the index does not know.
        greatest_ms = await _greatest_ms(reader, partition)
    return await _first_since(reader, partition, greatest_ms)


async def _greatest_ms(reader: LogReader, partition: PartitionLog) -> int:
    """The greatest time of all records from the start of the log on."""
    start_offset = partition.start_offset
    greatest_ms = -1
    for found in list(partition.segments):
        if found.next_offset <= start_offset:
            continue
        position = segment.HEADER_BYTES
        if found.base_offset >= start_offset:
            reached_ms = (await reader.index(partition, found)).max_timestamp_ms
            if reached_ms is not None:
                greatest_ms = max(greatest_ms, reached_ms)
                continue
        while batches := await reader.batches(partition, found, position):
            position += sum(map(len, batches))
            greatest_ms = max(greatest_ms, _greatest_of(batches, start_offset))
    for run in list(partition.tail.runs):
        greatest_ms = max(greatest_ms, _greatest_of(run.batches(start_offset), start_offset))
    return greatest_ms


def _greatest_of(batches: Iterable[BatchView], start_offset: int) -> int:
    return max(
        (
            record_ms
            for batch in batches
            for record_offset, record_ms in _times(batch)
            if record_offset >= start_offset
        ),
        default=-1,
    )


async def _candidates(
    reader: LogReader, partition: PartitionLog, timestamp_ms: int
) -> AsyncIterator[BatchView]:
    """Batches in the order of offsets, at least all that reach the time."""
    number = await _first_segment(reader, partition, timestamp_ms)
    while number < len(partition.segments):
        found = partition.segments[number]
        entries = await reader.index(partition, found)
        entry = entries.find_time(timestamp_ms)
        position = None if entry is None else entries.positions[entry]
        while position is not None:
            batches = await reader.batches(partition, found, position)
            for batch in batches:
                yield batch
                position += len(batch)
            if not batches:
                position = None
        if found.next_offset >= partition.segments.end_offset:
            break
        number = partition.segments.find(found.next_offset)
    end_offset = partition.segments.end_offset
    for run in list(partition.tail.runs):
        if run.last_offset >= end_offset and run.max_timestamp_ms >= timestamp_ms:
            for batch in run.batches(end_offset):
                yield batch


async def _first_segment(reader: LogReader, partition: PartitionLog, timestamp_ms: int) -> int:
    """The number of the first segment that can hold a record at or after the time."""
    count = len(partition.segments)
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        entries = await reader.index(partition, partition.segments[middle])
        reached_ms = entries.log_max_timestamp_ms
        if reached_ms is None or len(partition.segments) != count:
            return 0  # Nobody knows, or segments have come or gone meanwhile: look at all.
        if reached_ms >= timestamp_ms:
            high = middle
        else:
            low = middle + 1
    return low


def _times(batch: BatchView) -> Iterable[tuple[int, int]]:
    """The offset and the time of each record."""
    is_gapless = batch.count == batch.last_offset_delta + 1  # Not after compaction.
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME and is_gapless:
        return (
            (offset, batch.max_timestamp_ms)
            for offset in range(batch.base_offset, batch.next_offset)
        )
    return ((record.offset, record.timestamp_ms) for record in iterate(batch))
