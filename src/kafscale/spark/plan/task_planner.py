"""From offsets to tasks: small ranges are put together, large ones are split.

The laws: the tasks hold exactly the offsets that were asked for, each once; those of one partition
keep their order. A split is by offsets, in proportion to bytes: where in an object it lies is found
by the task, in the object's index, so that planning reads no index at all.

Pure: it knows the map only, and a task carries its part of that along.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kafscale.spark.plan.offset_map import Extent, OffsetMap, PartitionOffsets

TASK_BYTES: Final = 128 * 1024 * 1024
"""What one task reads at most, roughly; Spark's own files are split alike."""

TOGETHER_BYTES: Final = 16 * 1024 * 1024
"""Up to which size small ranges share a task: starting one costs more than reading this."""


class OffsetRange(msgspec.Struct, frozen=True, gc=False):
    """Offsets of a partition that somebody wants."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    """The first that is not wanted."""
    since_ms: int | None = None
    """Records that are older may be left out."""

    @property
    def count(self) -> int:
        return self.end_offset - self.start_offset


class Slice(msgspec.Struct, frozen=True):
    """Offsets of a partition, and where they were when the plan was made."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    extents: tuple[Extent, ...]
    since_ms: int | None = None

    @property
    def count(self) -> int:
        return self.end_offset - self.start_offset


class Task(msgspec.Struct, frozen=True):
    """What one task reads."""

    slices: tuple[Slice, ...]
    size_bytes: int = 0

    @property
    def count(self) -> int:
        """How many offsets it has; compaction may have left fewer records."""
        return sum(part.count for part in self.slices)


def plan(
    offset_map: OffsetMap,
    ranges: Sequence[OffsetRange],
    *,
    task_bytes: int = TASK_BYTES,
    min_tasks: int = 0,
    max_records: int = 0,
) -> list[Task]:
    """The tasks for some ranges, each of which is within its partition's map."""
    assert task_bytes > 0
    wanted = [
        (one, offset_map.partitions[one.topic, one.partition]) for one in ranges if one.count > 0
    ]
    if min_tasks:
        total = sum(found.bytes_between(one.start_offset, one.end_offset) for one, found in wanted)
        task_bytes = max(min(task_bytes, -(-total // min_tasks)), 1)
    slices = (
        (part, found.bytes_between(part.start_offset, part.end_offset))
        for one, found in wanted
        for part in _split(one, found, task_bytes, max_records)
    )
    return list(_packed(slices, min(task_bytes, TOGETHER_BYTES), max_records))


def _split(
    one: OffsetRange, found: PartitionOffsets, task_bytes: int, max_records: int
) -> Iterator[Slice]:
    """The range, in pieces that are no larger than wanted."""
    for start, end in _cuts(one, found, task_bytes, max_records):
        yield Slice(
            one.topic,
            one.partition,
            start,
            end,
            tuple(found.extents_between(start, end)),
            one.since_ms,
        )


def _cuts(
    one: OffsetRange, found: PartitionOffsets, task_bytes: int, max_records: int
) -> Iterator[tuple[int, int]]:
    start, taken_bytes = one.start_offset, 0
    for extent in found.extents_between(one.start_offset, one.end_offset):
        cursor = max(extent.start_offset, start)
        while cursor < extent.end_offset:
            left = extent.end_offset - cursor
            left_bytes = found.bytes_between(cursor, extent.end_offset)
            take = left
            if taken_bytes + left_bytes > task_bytes:
                take = left * max(task_bytes - taken_bytes, 0) // max(left_bytes, 1)
            if max_records:
                take = min(take, max_records - (cursor - start))
            take = min(max(take, 0 if cursor > start else 1), left)
            if take < left or (max_records and cursor + take - start == max_records):
                yield start, cursor + take
                start, taken_bytes = cursor + take, 0
            else:
                taken_bytes += left_bytes
            cursor += take
    if start < one.end_offset:
        yield start, one.end_offset


def _packed(
    slices: Iterable[tuple[Slice, int]], together_bytes: int, max_records: int
) -> Iterator[Task]:
    """Tasks of neighbouring slices, as long as they stay small."""
    waiting: list[Slice] = []
    size_bytes = count = 0
    for part, part_bytes in slices:
        is_full = size_bytes + part_bytes > together_bytes or (
            max_records > 0 and count + part.count > max_records
        )
        if waiting and is_full:
            yield Task(tuple(waiting), size_bytes)
            waiting, size_bytes, count = [], 0, 0
        waiting.append(part)
        size_bytes += part_bytes
        count += part.count
    if waiting:
        yield Task(tuple(waiting), size_bytes)
