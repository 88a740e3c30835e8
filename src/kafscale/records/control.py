"""End markers: the control batches that commit or abort a transaction in a partition.

A control batch is transactional, has one record and no sequence. The record, big-endian:

    key    at 0  version            int16   0
           at 2  type               int16   0 ABORT, 1 COMMIT; others are not about transactions
    value  at 0  version            int16   0
           at 2  coordinator epoch  int32   of the coordinator that has decided

Producer id and epoch of the batch name the transaction; KIP-890 markers have the epoch of the
transaction after it. Readers accept later versions, which may only add fields at the end.

Invariants: what `build_end_marker` returns is byte for byte what Apache Kafka writes. Compaction
may leave a control batch without its record; it says nothing any more.
"""

import enum
from struct import Struct
from typing import Final

import msgspec

from kafscale.errors import RecordsError
from kafscale.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, BatchView
from kafscale.records.builder import build
from kafscale.records.record import Record, iterate

_VERSION: Final = 0
_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")
_TRANSACTION_BITS: Final = CONTROL_BIT | TRANSACTIONAL_BIT
_CONTROL_BYTES_MAX: Final = 64 * 1024
"""Control records are small; other sizes are not decompressed."""


class ControlType(enum.IntEnum):
    """How a transaction has ended."""

    ABORT = 0
    COMMIT = 1


class EndMarker(msgspec.Struct, frozen=True, gc=False):
    """The content of a control batch that ends a transaction."""

    control_type: ControlType
    coordinator_epoch: int


def build_end_marker(
    producer_id: int,
    producer_epoch: int,
    control_type: ControlType,
    coordinator_epoch: int,
    timestamp_ms: int,
) -> bytearray:
    """Build the control batch; its base offset and leader epoch are set when it is appended."""
    record = Record(
        0, timestamp_ms, _KEY.pack(_VERSION, control_type), _VALUE.pack(_VERSION, coordinator_epoch)
    )
    return build(
        [record],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def is_of_transaction(batch: BatchView) -> bool:
    """Whether a batch has records or the end of a transaction.

    A producer without an id has no transactions, whatever its batches say.
    """
    return bool(batch.attributes & _TRANSACTION_BITS) and batch.producer_id >= 0


def read_end_marker(batch: BatchView) -> EndMarker | None:
    """Return the marker in a control batch; None if the batch does not end a transaction."""
    if not batch.attributes & CONTROL_BIT:
        return None
    try:
        record = next(iterate(batch, decompressed_bytes_max=_CONTROL_BYTES_MAX), None)
    except RecordsError:
        return None  # Producers cannot write control batches, so it is none of Kafka's.
    if record is None:
        return None
    key, value = record.key or b"", record.value or b""
    if len(key) < _KEY.size or len(value) < _VALUE.size:
        return None
    key_version, control_type = _KEY.unpack_from(key)
    value_version, coordinator_epoch = _VALUE.unpack_from(value)
    if key_version < 0 or value_version < 0 or control_type not in _TYPES:
        return None
    return EndMarker(ControlType(control_type), coordinator_epoch)


_TYPES: Final = frozenset(ControlType)
