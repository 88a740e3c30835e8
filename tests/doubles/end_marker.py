"""End markers of transactions (KIP-98): batches that only Kafka's own brokers write."""

import enum
from struct import pack

from kafscale.records import Record, build


class ControlType(enum.IntEnum):
    """Types of end markers."""

    ABORT = 0
    COMMIT = 1


def build_end_marker(
    kind: ControlType, *, offset: int, timestamp_ms: int, producer_id: int, producer_epoch: int
) -> bytearray:
    """Build a batch that ends the open transaction of a producer."""
    version, coordinator_epoch = 0, 0
    key, value = pack(">hh", version, kind), pack(">hi", version, coordinator_epoch)
    return build(
        [Record(offset, timestamp_ms, key, value)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )
