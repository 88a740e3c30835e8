"""Plans a round: which offsets of a topic the next commit covers. Pure.

Invariants: a partition continues at the offset that the table has; skipped offsets are logged; a
commit stays within its limits, but always advances. Partitions share the limits, and what one does
not use is left to the others, so that no partition falls behind.
"""

from collections.abc import Mapping, Sequence

from kafscale.errors import OffsetOutOfRangeError
from kafscale.observability.logging import get_logger
from kafscale.spark.plan.offset_map import PartitionOffsets
from kafscale.spark.plan.task_planner import OffsetRange

logger = get_logger(__name__)


def resume_offset(
    partition: PartitionOffsets, next_offset: int | None, *, fail_on_data_loss: bool
) -> int:
    """Return where a partition continues, if the table has its offsets before `next_offset`."""
    if next_offset is None:
        return partition.start_offset
    if next_offset > partition.high_watermark:
        raise OffsetOutOfRangeError(
            f"the table has offsets up to {next_offset} of {partition.topic}/{partition.partition},"
            f" which ends at {partition.high_watermark}: it was filled from another topic of that"
            " name"
        )
    if next_offset < partition.start_offset:
        if fail_on_data_loss:
            raise OffsetOutOfRangeError(
                f"offsets {next_offset} to {partition.start_offset - 1} of"
                f" {partition.topic}/{partition.partition} were deleted before they were read"
            )
        logger.warning(
            "offsets skipped",
            topic=partition.topic,
            partition=partition.partition,
            from_offset=next_offset,
            to_offset=partition.start_offset,
        )
    return max(next_offset, partition.start_offset)


def plan_ranges(
    partitions: Sequence[PartitionOffsets],
    starts: Mapping[int, int],
    *,
    bytes_max: int,
    records_max: int,
) -> list[OffsetRange]:
    """Return the next offsets of all partitions together."""
    pending = [one for one in partitions if starts[one.partition] < one.end_offset]
    # Those with the fewest bytes come first, and leave the rest of their share to the others.
    pending.sort(key=lambda one: one.bytes_between(starts[one.partition], one.end_offset))
    ranges = []
    bytes_left, records_left = bytes_max, records_max
    for index, one in enumerate(pending):
        start, others = starts[one.partition], len(pending) - index
        share = max(records_left // others, 1) if records_max else one.end_offset - start
        limit = min(one.end_offset, start + share)
        end = _end_within(one, start, limit, bytes_left // others)
        bytes_left -= one.bytes_between(start, end)
        records_left -= end - start
        ranges.append(OffsetRange(one.topic, one.partition, start, end))
    return sorted(ranges, key=lambda one: one.partition)


def _end_within(partition: PartitionOffsets, start: int, end: int, bytes_max: int) -> int:
    """Return the end of a range of at most `bytes_max`, but of at least one offset."""
    limit = start
    remaining = max(bytes_max, 0)
    for extent in partition.extents_between(start, end):
        size_bytes = partition.bytes_between(extent.start_offset, extent.end_offset)
        if size_bytes > remaining:
            count = extent.end_offset - extent.start_offset
            limit = extent.start_offset + count * remaining // size_bytes
            break
        remaining -= size_bytes
        limit = extent.end_offset
    return min(max(limit, start + 1), end)
