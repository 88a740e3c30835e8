"""`RefusedBatches`: keeps the order of batches that an idempotent producer sends without waiting.

A producer has up to five batches of a partition in flight. If the broker refuses the first one with
a retriable error, because it is about to lead the partition, and leads it when the second arrives,
the second has a gap before it: OUT_OF_ORDER_SEQUENCE_NUMBER. For a producer that this broker knows,
that means that records are lost, and librdkafka then starts a new epoch and sends batches again
that were stored: duplicates. For an unknown one, the second batch would be stored before the first.

Invariant: after a batch was refused with a retriable error, the batches that follow it on the same
connection are refused with NOT_LEADER_OR_FOLLOWER, which is retriable too, until the producer sends
the first one again. Only as many as can be in flight are: after those, the gap is the producer's.
"""

from struct import Struct
from typing import Final, NamedTuple

import msgspec

from kafscale.errors import NotOwnerError
from kafscale.records.batch import (
    HEADER_BYTES,
    MAGIC,
    MAGIC_POSITION,
    NO_PRODUCER_ID,
    PRODUCER_ID_POSITION,
)

FOLLOWERS_MAX: Final = 4
"""How many batches follow one that is in flight: idempotent producers have at most five."""

PRODUCERS_MAX: Final = 1_000
"""How many refused batches are remembered for a connection; of more, the oldest is forgotten."""

_SEQUENCE_MASK: Final = 2**31 - 1

PartitionKey = tuple[str | bytes, int]
"""The topic, as the producer names it, and the index of the partition."""


class _Producer(NamedTuple):
    id: int
    epoch: int
    base_sequence: int


_PRODUCER = Struct(">qhi")


class _Refused(msgspec.Struct):
    """The first batch that was refused."""

    epoch: int
    base_sequence: int
    followers_left: int = FOLLOWERS_MAX


class RefusedBatches:
    """The refused batches of one connection that the producer has not sent again."""

    def __init__(self) -> None:
        self._first: dict[tuple[PartitionKey, int], _Refused] = {}

    def note(self, partition: PartitionKey, records: memoryview | None) -> None:
        """Note that a batch was refused with a retriable error."""
        producer = _producer(records)
        if producer is None:
            return
        key = (partition, producer.id)
        first = self._first.pop(key, None)
        if first is None or not _follows(producer, first):
            first = _Refused(producer.epoch, producer.base_sequence)
        self._first[key] = first
        if len(self._first) > PRODUCERS_MAX:
            del self._first[next(iter(self._first))]

    def check(self, partition: PartitionKey, records: memoryview | None) -> None:
        """Raise if a batch follows one that was refused; forget that one if it is sent again."""
        producer = _producer(records) if self._first else None
        if producer is None:
            return
        key = (partition, producer.id)
        first = self._first.get(key)
        if first is None:
            return
        if not _follows(producer, first):
            if producer.epoch != first.epoch or producer.base_sequence == first.base_sequence:
                del self._first[key]
            return
        first.followers_left -= 1
        if not first.followers_left:
            del self._first[key]
        raise NotOwnerError(
            f"the batch of producer {producer.id} with sequence {first.base_sequence} was refused:"
            f" send it before the batch with sequence {producer.base_sequence}"
        )


def _producer(records: memoryview | None) -> _Producer | None:
    """The producer of a batch that nothing has checked yet; None if it is not idempotent."""
    if records is None or len(records) < HEADER_BYTES or records[MAGIC_POSITION] != MAGIC:
        return None
    producer = _Producer(*_PRODUCER.unpack_from(records, PRODUCER_ID_POSITION))
    return producer if producer.id > NO_PRODUCER_ID and producer.base_sequence >= 0 else None


def _follows(producer: _Producer, first: _Refused) -> bool:
    """Whether a batch comes after the first refused one; sequences begin again after 2^31 - 1."""
    distance = (producer.base_sequence - first.base_sequence) & _SEQUENCE_MASK
    return producer.epoch == first.epoch and 0 < distance < 2**30
