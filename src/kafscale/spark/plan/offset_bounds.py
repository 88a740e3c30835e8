"""Offset bounds of queries: parsing, JSON, and resolution to offsets of a log.

The JSON is that of Spark's Kafka source: {"topic": {"0": 23, "1": -2}}, where -2 is the earliest
offset and -1 the latest. Invariants: the JSON names every partition of a subscription and no other;
an offset outside of the log is rejected with the offsets that exist, unless data loss is allowed;
JSON is written in one order, so that equal offsets are equal text. Pure: the caller passes in the
function that finds offsets by timestamp.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import msgspec

from kafscale.errors import InvalidRequestError, OffsetOutOfRangeError, UnknownTopicError
from kafscale.spark.plan.offset_map import PartitionOffsets
from kafscale.text.topic_partition import TopicPartition

EARLIEST: Final = -2
LATEST: Final = -1

Offsets = dict[TopicPartition, int]
OffsetsJson = dict[str, dict[str, int]]

TimestampSearch = Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int | None]]
"""Returns the offset of the first record at or after a timestamp in ms, None if there is none."""


class GlobalOffset(msgspec.Struct, frozen=True):
    """The earliest or the latest offset of every partition."""

    offset: int


class SpecificOffsets(msgspec.Struct, frozen=True):
    """An offset for each partition."""

    offsets: Offsets


class GlobalTimestamp(msgspec.Struct, frozen=True):
    """The first record of every partition at or after a timestamp."""

    timestamp_ms: int


class SpecificTimestamps(msgspec.Struct, frozen=True):
    """The first record at or after a timestamp, given for each partition."""

    timestamps_ms: Offsets


Bound = GlobalOffset | SpecificOffsets | GlobalTimestamp | SpecificTimestamps
"""Where a query starts or ends."""


def is_latest(bound: Bound) -> bool:
    """Whether a bound means the latest offset, which depends on when it is resolved."""
    match bound:
        case GlobalOffset(offset):
            return offset == LATEST
        case SpecificOffsets(offsets):
            return LATEST in offsets.values()
    return False


# --- JSON -----------------------------------------------------------------------------------------


def parse(option: str, text: str) -> Offsets:
    """Parse the JSON of an option; the numbers are offsets or timestamps.

    >>> parse("startingOffsets", '{"orders": {"0": 23, "1": -2}}')
    {('orders', 0): 23, ('orders', 1): -2}
    """
    try:
        document = msgspec.json.decode(text, type=dict[str, dict[int, int]])
    except msgspec.MsgspecError as error:
        raise InvalidRequestError(
            f'{option} must be JSON like {{"topic": {{"0": 23, "1": -2}}}}, not {text!r}: {error}'
        ) from None
    return {
        (topic, partition): number
        for topic, numbers in document.items()
        for partition, number in numbers.items()
    }


def encode(offsets: Mapping[TopicPartition, int]) -> OffsetsJson:
    """Encode offsets for JSON, in a fixed order.

    >>> encode({("b", 0): 1, ("a", 10): 3, ("a", 9): 2})
    {'a': {'9': 2, '10': 3}, 'b': {'0': 1}}
    """
    document: OffsetsJson = {}
    for (topic, partition), offset in sorted(offsets.items()):
        document.setdefault(topic, {})[str(partition)] = offset
    return document


def decode(document: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        (topic, int(partition)): offset
        for topic, numbers in document.items()
        for partition, offset in numbers.items()
    }


def format_partitions(topic_partitions: Iterable[TopicPartition]) -> str:
    """Format partitions for a message.

    >>> format_partitions([("orders", 1), ("orders", 0)])
    'orders/0, orders/1'
    """
    return ", ".join(f"{topic}/{partition}" for topic, partition in sorted(topic_partitions))


# --- resolution -----------------------------------------------------------------------------------


class Side(msgspec.Struct, frozen=True):
    """The start or the end of a query: the prefix of its options, and how bounds are resolved."""

    name: str
    """The prefix of its option names: `starting` or `ending`."""
    needs_record: bool
    """Whether a timestamp after the last record is an error; if not, it means the latest offset."""
    clips: bool = False
    """Whether an offset outside of the log is replaced by the nearest one in it."""


def resolve(
    bound: Bound,
    partitions: Mapping[TopicPartition, PartitionOffsets],
    side: Side,
    search: TimestampSearch,
) -> Offsets:
    """Resolve a bound to an offset in each partition.

    A named offset may lie after the end that readers of committed records see.
    """
    match bound:
        case GlobalOffset(offset):
            return {
                topic_partition: _absolute(offset, partition)
                for topic_partition, partition in partitions.items()
            }
        case SpecificOffsets(offsets):
            _check_complete(f"{side.name}Offsets", offsets.keys(), partitions.keys())
            return {
                topic_partition: _in_range(side, offsets[topic_partition], partition)
                for topic_partition, partition in partitions.items()
            }
        case GlobalTimestamp(timestamp_ms):
            timestamps_ms = dict.fromkeys(partitions, timestamp_ms)
        case SpecificTimestamps(timestamps_ms):
            option = f"{side.name}OffsetsByTimestamp"
            _check_complete(option, timestamps_ms.keys(), partitions.keys())
    offsets_by_time = search(timestamps_ms)
    missing = [
        topic_partition
        for topic_partition in partitions
        if offsets_by_time[topic_partition] is None
    ]
    if missing and side.needs_record:
        raise OffsetOutOfRangeError(
            f"{side.name}Timestamp: there is no record at or after "
            + ", ".join(
                f"{timestamps_ms[topic_partition]} ms in {format_partitions([topic_partition])}"
                for topic_partition in sorted(missing)
            )
            + "; set startingOffsetsByTimestampStrategy=latest to start at the latest offset there"
        )
    return {
        topic_partition: partition.end_offset if offset is None else offset
        for topic_partition, partition in partitions.items()
        for offset in [offsets_by_time[topic_partition]]
    }


def _absolute(offset: int, partition: PartitionOffsets) -> int:
    if offset == EARLIEST:
        return partition.start_offset
    return partition.end_offset if offset == LATEST else offset


def _in_range(side: Side, offset: int, partition: PartitionOffsets) -> int:
    offset = _absolute(offset, partition)
    nearest = min(max(offset, partition.start_offset), partition.high_watermark)
    if offset != nearest and not side.clips:
        raise OffsetOutOfRangeError(
            f"{side.name}Offsets: {partition.topic}/{partition.partition} has no offset {offset}, "
            f"only offsets from {partition.start_offset} to {partition.high_watermark}; "
            "set failOnDataLoss=false to use the nearest one"
        )
    return nearest


def _check_complete(
    option: str, named: Collection[TopicPartition], existing: Collection[TopicPartition]
) -> None:
    left_out = set(existing) - set(named)
    if left_out:
        raise InvalidRequestError(
            f"{option} lacks {format_partitions(left_out)}: it must name every partition that is "
            "read; -2 is the earliest offset, -1 the latest"
        )
    unknown = set(named) - set(existing)
    if unknown:
        raise UnknownTopicError(
            f"{option} names {format_partitions(unknown)}, which does not exist or is not read; "
            f"the partitions are {format_partitions(existing) or 'none'}"
        )
