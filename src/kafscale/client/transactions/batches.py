"""Batches of a transaction: records of one partition are collected, and batches get their producer.

The sequence numbers of a partition continue from transaction to transaction as long as the producer
keeps its epoch, and start at 0 with every new epoch.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final

from kafscale.client.transactions.coordinator import ProducerIdentity
from kafscale.records import BatchView, Codec, Header, Record, build
from kafscale.records.batch import (
    ATTRIBUTES_POSITION,
    BASE_SEQUENCE_POSITION,
    PRODUCER_ID_POSITION,
    TRANSACTIONAL_BIT,
)

RECORD_OVERHEAD_BYTES: Final = 12
"""The approximate size of the lengths and deltas of a record."""

_PRODUCER: Final = Struct(">qhi")
_ATTRIBUTES: Final = Struct(">h")
_SEQUENCE_MASK: Final = 0x7FFF_FFFF

assert PRODUCER_ID_POSITION + _PRODUCER.size == BASE_SEQUENCE_POSITION + 4


class RecordCollector:
    """Collects the records of the next batch of a partition."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self._records: list[Record] = []

    def __bool__(self) -> bool:
        return bool(self._records)

    def add(
        self, key: bytes | None, value: bytes | None, headers: Sequence[Header], timestamp_ms: int
    ) -> None:
        self._records.append(Record(len(self._records), timestamp_ms, key, value, tuple(headers)))
        self.size_bytes += len(key or b"") + len(value or b"") + RECORD_OVERHEAD_BYTES
        for header in headers:
            self.size_bytes += len(header.key) + len(header.value or b"")

    def take(self, codec: Codec) -> bytearray:
        """Return the batch of the records, and start a new one."""
        batch = build(self._records, codec=codec)
        self.clear()
        return batch

    def clear(self) -> None:
        self._records = []
        self.size_bytes = 0


def stamp(batch: bytearray, producer: ProducerIdentity, sequence: int) -> None:
    """Make a batch part of the producer's transaction, in place."""
    view = BatchView(batch)
    _ATTRIBUTES.pack_into(batch, ATTRIBUTES_POSITION, view.attributes | TRANSACTIONAL_BIT)
    _PRODUCER.pack_into(batch, PRODUCER_ID_POSITION, *producer, sequence)
    view.write_checksum()


def sequence_after(batch: bytearray, sequence: int) -> int:
    """The sequence of the batch after this one."""
    return (sequence + BatchView(batch).count) & _SEQUENCE_MASK
