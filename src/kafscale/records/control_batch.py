"""Control records: how a log says that a transaction ended (KIP-98).

They come in batches of their own with the control bit set, take an offset each, and are kept from
applications by the consumer. The key is a version and a type; the value of an end marker is a
version and the epoch of the coordinator. Only brokers write them: `BatchView.validate` refuses them
from producers.
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
    """The end markers; Kafka has more types for its own quorum, which no log of ours holds."""

    ABORT = 0
    COMMIT = 1


def control_type(record: Record) -> ControlType | None:
    """What a record of a control batch says, or None where it is none of our concern."""
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
    """A batch that ends the open transaction of a producer."""
    key = _KEY.pack(_VERSION, kind)
    value = _END_MARKER.pack(_VERSION, coordinator_epoch)
    return build(
        [Record(offset, timestamp_ms, key, value)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )
