"""Computes a micro-batch of a stream: its end offsets, its offset ranges, and lost offsets.

Start offsets come from Spark's checkpoint. Meanwhile partitions may have been added, retention may
have deleted records, a topic may have been deleted, or recreated under its name. Invariants: a new
partition is read from its earliest offset; no offset is read twice; every skipped offset is
reported as a loss, and the caller decides whether that is an error. The rules are those of Spark's
Kafka source. A micro-batch of committed records ends at the last stable offset, where the next one
begins. Pure.
"""

from collections.abc import Mapping
from math import ceil, floor

from kafscale.errors import InvalidRequestError
from kafscale.spark.plan.offset_bounds import Offsets, format_partitions
from kafscale.spark.plan.offset_map import PartitionOffsets
from kafscale.spark.plan.task_planner import OffsetRange
from kafscale.text.topic_partition import TopicPartition


def end_offsets(
    partitions: Mapping[TopicPartition, PartitionOffsets], start: Mapping[TopicPartition, int]
) -> Offsets:
    """Return the end of all partitions, but none below the checkpointed offsets `start`.

    These may be after the last stable offset, if an earlier run read uncommitted records.
    """
    ends: Offsets = {}
    for key, partition in partitions.items():
        known = start.get(key, 0)
        is_beyond = partition.end_offset < known <= partition.high_watermark
        ends[key] = known if is_beyond else partition.end_offset
    return ends


def first_offset(start: Mapping[TopicPartition, int], partition: PartitionOffsets) -> int:
    """Return the first offset of a partition to read, after the checkpointed offsets `start`."""
    offset = start.get((partition.topic, partition.partition))
    if offset is None or offset > partition.high_watermark:
        return partition.start_offset  # A new partition, or one of a recreated topic.
    return max(offset, partition.start_offset)


def count(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    partitions: Mapping[TopicPartition, PartitionOffsets],
) -> int:
    """Return the number of offsets to read."""
    return sum(
        max(end_offset - first_offset(start, partitions[topic_partition]), 0)
        for topic_partition, end_offset in end.items()
    )


def limit(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    partitions: Mapping[TopicPartition, PartitionOffsets],
    offsets_max: int,
) -> Offsets:
    """Limit a micro-batch to about `offsets_max` offsets, shared in proportion to what is new.

    Shares are rounded, so the sum may differ; every partition with new records advances.
    """
    total = count(start, end, partitions)
    limited: Offsets = {}
    for topic_partition, end_offset in end.items():
        begin = first_offset(start, partitions[topic_partition])
        share = offsets_max * max(end_offset - begin, 0) / max(total, 1)
        step = ceil(share) if share < 1 else floor(share)
        limited[topic_partition] = min(end_offset, begin + step)
    return limited


def ranges(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    partitions: Mapping[TopicPartition, PartitionOffsets],
    *,
    is_first: bool = False,
) -> tuple[list[OffsetRange], list[str]]:
    """Return the ranges between two checkpoints, and a description of each loss.

    When the first micro-batch of a stream is retried, the start may lie after the end, because it
    was resolved again later.
    """
    result: list[OffsetRange] = []
    losses: list[str] = []
    for topic_partition, end_offset in end.items():
        name = format_partitions([topic_partition])
        partition = partitions.get(topic_partition)
        if partition is None:
            losses.append(f"{name} no longer exists; offsets below {end_offset} are lost")
            continue
        start_offset = start.get(topic_partition)
        if start_offset is not None and is_first:
            start_offset = min(start_offset, end_offset)
        if start_offset is None:
            start_offset = 0
            begin = partition.start_offset
        elif start_offset > end_offset:
            losses.append(
                f"{name} was recreated: it was read up to offset {start_offset}, "
                f"and now ends at {end_offset}"
            )
            start_offset = begin = partition.start_offset
        else:
            begin = max(start_offset, partition.start_offset)
        if begin > start_offset < end_offset:
            losses.append(
                f"offsets {start_offset} to {min(begin, end_offset) - 1} of {name} were deleted "
                "by retention"
            )
        if end_offset > partition.high_watermark:
            losses.append(f"{name} ends at {partition.high_watermark} instead of {end_offset}")
        elif begin < end_offset > partition.end_offset:
            raise InvalidRequestError(
                f"offsets {partition.end_offset} to {end_offset - 1} of {name} are behind a"
                " transaction that is still open, but the micro-batch that was planned with"
                " isolationLevel=read_uncommitted has them: run it again with that option"
            )
        stop = min(end_offset, partition.end_offset)
        if begin < stop:
            result.append(OffsetRange(*topic_partition, begin, stop))
    losses += [
        f"{format_partitions([topic_partition])} no longer exists; it was read up to {offset}"
        for topic_partition, offset in start.items()
        if topic_partition not in end
    ]
    return result, losses
