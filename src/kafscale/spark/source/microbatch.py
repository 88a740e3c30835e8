"""One step of a stream: how far it goes, what it reads, and what was lost before it came.

Offsets are those of Spark's checkpoints, the log may have moved on since: partitions have come,
retention has passed a slow reader, a topic was deleted, or created again under its name. The laws:
a partition that is new is read from its earliest offset; nothing is read twice; whatever is
skipped is told, as a loss, and whether that is an error is the caller's to say. The rules are those
of Spark's Kafka source. Pure.
"""

from collections.abc import Mapping
from math import ceil, floor

from kafscale.spark.plan.offset_map import PartitionOffsets, TopicPartition
from kafscale.spark.plan.offsets import Offsets, show
from kafscale.spark.plan.task_planner import OffsetRange


def begin(start: Mapping[TopicPartition, int], found: PartitionOffsets) -> int:
    """From where a partition is read, given up to where it was read before."""
    offset = start.get((found.topic, found.partition))
    if offset is None or offset > found.end_offset:
        return found.start_offset  # It is new, or new under an old name.
    return max(offset, found.start_offset)


def count(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    partitions: Mapping[TopicPartition, PartitionOffsets],
) -> int:
    """How many offsets there are to read."""
    return sum(max(end[place] - begin(start, partitions[place]), 0) for place in end)


def limit(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    partitions: Mapping[TopicPartition, PartitionOffsets],
    offsets_max: int,
) -> Offsets:
    """How far to go with so many offsets: each partition in proportion to what it has.

    Not quite so many, as shares are rounded; but every partition that has records moves.
    """
    total = count(start, end, partitions)
    limited: Offsets = {}
    for place, end_offset in end.items():
        begin_offset = begin(start, partitions[place])
        share = offsets_max * max(end_offset - begin_offset, 0) / max(total, 1)
        step = ceil(share) if share < 1 else floor(share)
        limited[place] = min(end_offset, begin_offset + step)
    return limited


def ranges(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    partitions: Mapping[TopicPartition, PartitionOffsets],
    *,
    is_first: bool = False,
) -> tuple[list[OffsetRange], list[str]]:
    """What to read between two offsets, and what is lost.

    In the first step of a stream that is tried again, the start may lie beyond the end: it was
    looked up anew, later.
    """
    wanted: list[OffsetRange] = []
    losses: list[str] = []
    for place, end_offset in end.items():
        name = show([place])
        found = partitions.get(place)
        if found is None:
            losses.append(f"{name} is gone, as is everything up to offset {end_offset}")
            continue
        start_offset = start.get(place)
        if start_offset is not None and is_first:
            start_offset = min(start_offset, end_offset)
        if start_offset is None:
            start_offset = 0
            begin_offset = found.start_offset
        elif start_offset > end_offset:
            losses.append(
                f"{name} was created anew: it was read up to offset {start_offset} before, "
                f"and goes up to {end_offset} now"
            )
            start_offset = begin_offset = found.start_offset
        else:
            begin_offset = max(start_offset, found.start_offset)
        if begin_offset > start_offset < end_offset:
            losses.append(
                f"{name} has lost the offsets {start_offset} to "
                f"{min(begin_offset, end_offset) - 1} to retention"
            )
        if end_offset > found.end_offset:
            losses.append(f"{name} ends at {found.end_offset} instead of {end_offset}")
        stop_offset = min(end_offset, found.end_offset)
        if begin_offset < stop_offset:
            wanted.append(OffsetRange(*place, begin_offset, stop_offset))
    losses += [
        f"{show([place])} is gone; it was read up to offset {offset}"
        for place, offset in start.items()
        if place not in end
    ]
    return wanted, losses
