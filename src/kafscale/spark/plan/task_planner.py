"""Splits offset ranges into tasks: small ranges share a task, large ranges are split.

Invariants: the tasks cover exactly the requested offsets, each once; those of one partition keep
their order. Ranges are split by offsets in proportion to bytes. The task finds the byte position in
the index of the object, so planning reads no index.

Pure: it uses the offset map only, and each task carries the extents that it reads.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kafscale.spark.plan.offset_map import Extent, OffsetMap, PartitionOffsets
from kafscale.storage.log.state.transactions import TransactionSpans

TASK_BYTES: Final = 128 * 1024 * 1024
"""The approximate maximum that one task reads; the size of Spark's own file splits."""

PACK_BYTES: Final = 16 * 1024 * 1024
"""Small ranges share a task up to this size: starting a task costs more than reading this."""


class OffsetRange(msgspec.Struct, frozen=True, gc=False):
    """Offsets of a partition that are to be read."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    """Exclusive."""
    since_ms: int | None = None
    """Records before this timestamp may be left out."""

    @property
    def count(self) -> int:
        return self.end_offset - self.start_offset


class Slice(msgspec.Struct, frozen=True):
    """Offsets of a partition that one task reads, and where they were at planning time."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    extents: tuple[Extent, ...]
    since_ms: int | None = None
    aborted: TransactionSpans | None = None
    """The aborted transactions that touch these offsets, for readers of committed records."""

    @property
    def count(self) -> int:
        return self.end_offset - self.start_offset

    @classmethod
    def of(
        cls,
        partition: PartitionOffsets,
        start_offset: int,
        end_offset: int,
        since_ms: int | None = None,
    ) -> "Slice":
        return cls(
            partition.topic,
            partition.partition,
            start_offset,
            end_offset,
            tuple(partition.extents_between(start_offset, end_offset)),
            since_ms,
            partition.aborted_between(start_offset, end_offset),
        )


class Task(msgspec.Struct, frozen=True):
    """The slices that one Spark task reads."""

    slices: tuple[Slice, ...]
    size_bytes: int = 0

    @property
    def count(self) -> int:
        """The number of offsets; compaction may have left fewer records."""
        return sum(part.count for part in self.slices)


def plan(
    offset_map: OffsetMap,
    ranges: Sequence[OffsetRange],
    *,
    task_bytes: int = TASK_BYTES,
    min_tasks: int = 0,
    max_records: int = 0,
) -> list[Task]:
    """Plan the tasks for some ranges, each of which lies within the map of its partition."""
    assert task_bytes > 0
    pairs = [
        (range_, offset_map.partitions[range_.topic, range_.partition])
        for range_ in ranges
        if range_.count > 0
    ]
    if min_tasks:
        total = sum(
            partition.bytes_between(range_.start_offset, range_.end_offset)
            for range_, partition in pairs
        )
        task_bytes = max(min(task_bytes, -(-total // min_tasks)), 1)
    slices = (
        (part, partition.bytes_between(part.start_offset, part.end_offset))
        for range_, partition in pairs
        for part in _split(range_, partition, task_bytes, max_records)
    )
    return list(_pack(slices, min(task_bytes, PACK_BYTES), max_records))


def _split(
    range_: OffsetRange, partition: PartitionOffsets, task_bytes: int, max_records: int
) -> Iterator[Slice]:
    """Split a range into slices within the limits."""
    for start, end in _split_points(range_, partition, task_bytes, max_records):
        yield Slice.of(partition, start, end, range_.since_ms)


def _split_points(
    range_: OffsetRange, partition: PartitionOffsets, task_bytes: int, max_records: int
) -> Iterator[tuple[int, int]]:
    start, slice_bytes = range_.start_offset, 0
    for extent in partition.extents_between(range_.start_offset, range_.end_offset):
        cursor = max(extent.start_offset, start)
        while cursor < extent.end_offset:
            remaining = extent.end_offset - cursor
            left_bytes = partition.bytes_between(cursor, extent.end_offset)
            count = remaining
            if slice_bytes + left_bytes > task_bytes:
                count = remaining * max(task_bytes - slice_bytes, 0) // max(left_bytes, 1)
            if max_records:
                count = min(count, max_records - (cursor - start))
            count = min(max(count, 0 if cursor > start else 1), remaining)
            if count < remaining or (max_records and cursor + count - start == max_records):
                yield start, cursor + count
                start, slice_bytes = cursor + count, 0
            else:
                slice_bytes += left_bytes
            cursor += count
    if start < range_.end_offset:
        yield start, range_.end_offset


def _pack(slices: Iterable[tuple[Slice, int]], pack_bytes: int, max_records: int) -> Iterator[Task]:
    """Pack consecutive small slices into shared tasks."""
    pending: list[Slice] = []
    size_bytes = count = 0
    for part, part_bytes in slices:
        is_full = size_bytes + part_bytes > pack_bytes or (
            max_records > 0 and count + part.count > max_records
        )
        if pending and is_full:
            yield Task(tuple(pending), size_bytes)
            pending, size_bytes, count = [], 0, 0
        pending.append(part)
        size_bytes += part_bytes
        count += part.count
    if pending:
        yield Task(tuple(pending), size_bytes)
