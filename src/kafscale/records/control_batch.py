"""Control batches: markers that end transactions (KIP-98).

A control batch has the control bit set. Each control record has an offset, and consumers hide it
from applications. Its key is a version and a type; the value of an end marker is a version and the
coordinator epoch. Only brokers write control batches: `BatchView.validate` rejects them from
producers.
"""

import enum
from struct import Struct
from typing import Final

from kafscale.errors import InvalidRecordError
from kafscale.records.builder import build
from kafscale.records.record import Record

_KEY: Final = Struct(">hh")
_END_MARKER: Final = Struct(">hi")
_VERSION: Final = 0

assert _KEY.size == 4
assert _END_MARKER.size == 6


class ControlType(enum.IntEnum):
    """Types of end markers; Kafka's types for KRaft do not occur here."""

    ABORT = 0
    COMMIT = 1


def control_type(record: Record) -> ControlType | None:
    """Return the type of a control record; None if it is not an end marker."""
    if record.key is None or len(record.key) < _KEY.size:
        raise InvalidRecordError("the key of a control record is too short")
    _, number = _KEY.unpack_from(record.key)
    try:
        return ControlType(number)
    except ValueError:
        return None


def build_end_marker(
    kind: ControlType,
    *,
    offset: int,
    timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int = 0,
) -> bytearray:
    """Build a batch that ends the open transaction of a producer."""
    key = _KEY.pack(_VERSION, kind)
    value = _END_MARKER.pack(_VERSION, coordinator_epoch)
    return build(
        [Record(offset, timestamp_ms, key, value)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )
