"""Offsets as queries say them: in words, in JSON, as times; and what they come to in a log.

The JSON is that of Spark's Kafka source: {"topic": {"0": 23, "1": -2}}, where -2 is the earliest
offset and -1 the latest. The laws: JSON names every partition of a subscription and no other;
an offset that the log does not hold is refused by name, with what the log holds, unless loss is
allowed; what is encoded is in one order, so that equal offsets are equal text. Pure: where times
are asked for, the caller is told which, and comes back with offsets.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import msgspec

from kafscale.errors import InvalidRequestError, OffsetOutOfRangeError, UnknownTopicError
from kafscale.spark.plan.offset_map import PartitionOffsets, TopicPartition

EARLIEST: Final = -2
LATEST: Final = -1

Offsets = dict[TopicPartition, int]
Document = dict[str, dict[str, int]]
"""Offsets as they stand in JSON."""

Search = Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int | None]]
"""For times in milliseconds, the offsets of the first records at or after them, if there are."""


class Everywhere(msgspec.Struct, frozen=True):
    """The earliest or the latest offset of every partition."""

    offset: int


class Named(msgspec.Struct, frozen=True):
    """An offset for each partition."""

    offsets: Offsets


class Since(msgspec.Struct, frozen=True):
    """The first record of every partition at or after a time."""

    timestamp_ms: int


class SinceEach(msgspec.Struct, frozen=True):
    """The same, with a time for each partition."""

    timestamps_ms: Offsets


Bound = Everywhere | Named | Since | SinceEach
"""Where a query begins, or ends."""


def is_latest(bound: Bound) -> bool:
    """Whether a bound depends on when it is looked at."""
    match bound:
        case Everywhere(offset):
            return offset == LATEST
        case Named(offsets):
            return LATEST in offsets.values()
    return False


# --- JSON -----------------------------------------------------------------------------------------


def parse(option: str, text: str) -> Offsets:
    """The numbers in the JSON of an option, which are offsets or times.

    >>> parse("startingOffsets", '{"orders": {"0": 23, "1": -2}}')
    {('orders', 0): 23, ('orders', 1): -2}
    """
    try:
        document = msgspec.json.decode(text, type=dict[str, dict[int, int]])
    except msgspec.MsgspecError as error:
        raise InvalidRequestError(
            f'{option} is like {{"topic": {{"0": 23, "1": -2}}}}, not {text!r}: {error}'
        ) from None
    return {
        (topic, partition): number
        for topic, numbers in document.items()
        for partition, number in numbers.items()
    }


def encode(offsets: Mapping[TopicPartition, int]) -> Document:
    """Offsets for JSON, always in the same order.

    >>> encode({("b", 0): 1, ("a", 10): 3, ("a", 9): 2})
    {'a': {'9': 2, '10': 3}, 'b': {'0': 1}}
    """
    document: Document = {}
    for (topic, partition), offset in sorted(offsets.items()):
        document.setdefault(topic, {})[str(partition)] = offset
    return document


def decode(document: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        (topic, int(partition)): offset
        for topic, numbers in document.items()
        for partition, offset in numbers.items()
    }


def show(places: Iterable[TopicPartition]) -> str:
    """Partitions in a message.

    >>> show([("orders", 1), ("orders", 0)])
    'orders/0, orders/1'
    """
    return ", ".join(f"{topic}/{partition}" for topic, partition in sorted(places))


# --- what they come to ----------------------------------------------------------------------------


class Side(msgspec.Struct, frozen=True):
    """The beginning or the end of a query: how its options are called, and what they may do."""

    name: str
    """What the names of its options begin with: starting, or ending."""
    needs_record: bool
    """Whether a time that no record has reached is an error; it means the latest offset if not."""
    clips: bool = False
    """Whether offsets that are not there give way to the nearest ones that are."""


def resolve(
    bound: Bound, partitions: Mapping[TopicPartition, PartitionOffsets], side: Side, search: Search
) -> Offsets:
    """The offset in each partition that a bound means."""
    match bound:
        case Everywhere(offset):
            return {place: _meant(offset, found) for place, found in partitions.items()}
        case Named(named):
            _check_complete(f"{side.name}Offsets", named.keys(), partitions.keys())
            return {
                place: _checked(side, place, named[place], found)
                for place, found in partitions.items()
            }
        case Since(timestamp_ms):
            wanted = dict.fromkeys(partitions, timestamp_ms)
        case SinceEach(wanted):
            _check_complete(f"{side.name}OffsetsByTimestamp", wanted.keys(), partitions.keys())
    found_offsets = search(wanted)
    missing = [place for place in partitions if found_offsets[place] is None]
    if missing and side.needs_record:
        raise OffsetOutOfRangeError(
            f"{side.name}Timestamp: there is no record at or after "
            + ", ".join(f"{wanted[place]} ms in {show([place])}" for place in sorted(missing))
            + "; startingOffsetsByTimestampStrategy=latest begins there with what is to come"
        )
    return {
        place: found.end_offset if offset is None else offset
        for place, found in partitions.items()
        for offset in [found_offsets[place]]
    }


def _meant(offset: int, found: PartitionOffsets) -> int:
    if offset == EARLIEST:
        return found.start_offset
    return found.end_offset if offset == LATEST else offset


def _checked(side: Side, place: TopicPartition, offset: int, found: PartitionOffsets) -> int:
    meant = _meant(offset, found)
    nearest = min(max(meant, found.start_offset), found.end_offset)
    if meant != nearest and not side.clips:
        raise OffsetOutOfRangeError(
            f"{side.name}Offsets: {show([place])} has no offset {meant}, but those from "
            f"{found.start_offset} to {found.end_offset}; failOnDataLoss=false takes the nearest"
        )
    return nearest


def _check_complete(
    option: str, named: Collection[TopicPartition], there: Collection[TopicPartition]
) -> None:
    left_out = set(there) - set(named)
    if left_out:
        raise InvalidRequestError(
            f"{option} leaves out {show(left_out)}: it has to name every partition that is read; "
            "-2 is the earliest offset, -1 the latest"
        )
    unknown = set(named) - set(there)
    if unknown:
        raise UnknownTopicError(
            f"{option} names {show(unknown)}, which is not read or not there; "
            f"there is {show(there) or 'nothing'}"
        )
