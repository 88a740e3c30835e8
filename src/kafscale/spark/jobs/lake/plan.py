"""How far a round goes: which offsets of a topic the next commit covers. Pure.

The laws: a partition goes on where the table says; nothing is skipped without a word; a commit
stays within its limits, but always moves on. Partitions share the limit, and what one does not need
is for the others, so that none falls behind for ever.
"""

from collections.abc import Mapping, Sequence

from kafscale.errors import OffsetOutOfRangeError
from kafscale.observability.logging import get_logger
from kafscale.spark.plan.offset_map import PartitionOffsets
from kafscale.spark.plan.task_planner import OffsetRange

log = get_logger(__name__)


def resume(found: PartitionOffsets, next_offset: int | None, *, fail_on_data_loss: bool) -> int:
    """From where a partition goes on, if the table has come to `next_offset`."""
    if next_offset is None:
        return found.start_offset
    if next_offset > found.end_offset:
        raise OffsetOutOfRangeError(
            f"the table has come to offset {next_offset} of {found.topic}/{found.partition}, which"
            f" ends at {found.end_offset}: the topic is not the one that the table was filled from"
        )
    if next_offset < found.start_offset:
        if fail_on_data_loss:
            raise OffsetOutOfRangeError(
                f"offsets {next_offset} to {found.start_offset - 1} of"
                f" {found.topic}/{found.partition} were deleted before they were read"
            )
        log.warning(
            "offsets skipped",
            topic=found.topic,
            partition=found.partition,
            from_offset=next_offset,
            to_offset=found.start_offset,
        )
    return max(next_offset, found.start_offset)


def ranges(
    found: Sequence[PartitionOffsets],
    starts: Mapping[int, int],
    *,
    bytes_max: int,
    records_max: int,
) -> list[OffsetRange]:
    """The offsets that come next, of all partitions together."""
    waiting = [one for one in found if starts[one.partition] < one.end_offset]
    # Those that need least come first, and leave the rest of their share to the others.
    waiting.sort(key=lambda one: one.bytes_between(starts[one.partition], one.end_offset))
    chosen = []
    bytes_left, records_left = bytes_max, records_max
    for index, one in enumerate(waiting):
        start, others = starts[one.partition], len(waiting) - index
        share = max(records_left // others, 1) if records_max else one.end_offset - start
        limit = min(one.end_offset, start + share)
        end = _reach(one, start, limit, bytes_left // others)
        bytes_left -= one.bytes_between(start, end)
        records_left -= end - start
        chosen.append(OffsetRange(one.topic, one.partition, start, end))
    return sorted(chosen, key=lambda one: one.partition)


def _reach(found: PartitionOffsets, start: int, end: int, bytes_max: int) -> int:
    """How far so many bytes go, at least one offset."""
    reached = start
    left = max(bytes_max, 0)
    for extent in found.extents_between(start, end):
        size_bytes = found.bytes_between(extent.start_offset, extent.end_offset)
        if size_bytes > left:
            count = extent.end_offset - extent.start_offset
            reached = extent.start_offset + count * left // size_bytes
            break
        left -= size_bytes
        reached = extent.end_offset
    return min(max(reached, start + 1), end)
