"""Rewrites record batches: drops records, extends or rebases the offset range of a batch.

A rewritten batch keeps what Kafka's log cleaner keeps: codec, leader epoch, producer, timestamps
and the offset of each record. It still spans the offsets of dropped records, because the offsets of
a log are contiguous, and it takes over the offset range of neighbouring batches that are dropped
entirely. Its last sequence never changes, because brokers deduplicate producers by it.

The delete horizon is that of KIP-534: a tombstone may be removed once its horizon has passed.
Compaction writes the horizon when it first meets a tombstone, in the place of the base timestamp,
and rewrites all timestamp deltas, so that readers still compute the original timestamps.
"""

from struct import Struct
from typing import Final

from kafscale.records.batch import (
    BASE_SEQUENCE_POSITION,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    LAST_OFFSET_DELTA_POSITION,
    LENGTH_OVERHEAD_BYTES,
    NO_SEQUENCE,
    BatchHeader,
    BatchView,
    TimestampType,
)
from kafscale.records.compaction import copy_kept
from kafscale.records.compression import compress
from kafscale.records.record import inflate, iterate

SPAN_MAX: Final = 2**31 - 1
"""The most offsets that a batch may span. The format would allow one more."""

HORIZON_MS_MAX: Final = 2**62
"""Later than any real timestamp, but small enough that deltas from it fit into 64 bits."""

_SEQUENCE_MASK: Final = 0x7FFF_FFFF
_INT32: Final = Struct(">i")
_INT64_MIN: Final = -(2**63)


def rebuild_batch(
    batch: BatchView,
    records: bytes,
    kept: bytes,
    *,
    base_offset: int | None = None,
    horizon_ms: int | None = None,
) -> BatchView:
    """Return the batch with only the kept records; at least one record must be kept.

    `records` are those of the batch, decompressed, and `kept` has one byte for each, 1 if it is
    kept. A new base offset must not be greater than the offset of any kept record.
    """
    assert any(kept)
    header = batch.header()
    if header.base_timestamp_ms < -HORIZON_MS_MAX:
        horizon_ms = None  # The deltas would overflow: such tombstones are never removed.
    new_base = header.base_offset if base_offset is None else base_offset
    base_ms = header.base_timestamp_ms if horizon_ms is None else horizon_ms
    copied, least, greatest = copy_kept(
        records, kept, header.base_offset - new_base, header.base_timestamp_ms - base_ms
    )
    if horizon_ms is not None and header.base_timestamp_ms + least - horizon_ms < _INT64_MIN:
        return rebuild_batch(batch, records, kept, base_offset=base_offset)
    max_ms = header.max_timestamp_ms
    if batch.timestamp_type is TimestampType.CREATE_TIME:
        max_ms = header.base_timestamp_ms + greatest
    changed = header._replace(
        base_offset=new_base,
        attributes=header.attributes | (DELETE_HORIZON_BIT if horizon_ms is not None else 0),
        last_offset_delta=header.base_offset + header.last_offset_delta - new_base,
        base_timestamp_ms=base_ms,
        max_timestamp_ms=max_ms,
        record_count=kept.count(1),
    )
    return _assemble(changed, header, compress(batch.codec, copied))


def extend_batch(batch: BatchView, last_offset: int) -> BatchView:
    """Return the batch with a later last offset."""
    header = batch.header()
    delta = last_offset - header.base_offset
    assert header.last_offset_delta <= delta < SPAN_MAX
    output = bytearray(batch.buffer)
    _INT32.pack_into(output, LAST_OFFSET_DELTA_POSITION, delta)
    _INT32.pack_into(output, BASE_SEQUENCE_POSITION, _base_sequence(header, delta))
    changed = BatchView(output)
    changed.write_checksum()
    return changed


def rebase_batch(batch: BatchView, base_offset: int) -> BatchView | None:
    """Return the batch with another base offset; None if no record is at or after it."""
    kept = bytes(record.offset >= base_offset for record in iterate(batch))
    if not any(kept):
        return None
    return rebuild_batch(batch, inflate(batch), kept, base_offset=base_offset)


def keep_last_record(batch: BatchView) -> BatchView:
    """Return the batch with its last record only."""
    return rebuild_batch(batch, inflate(batch), bytes(batch.count - 1) + b"\x01")


def _assemble(changed: BatchHeader, before: BatchHeader, payload: bytes) -> BatchView:
    sized = changed._replace(
        length=HEADER_BYTES - LENGTH_OVERHEAD_BYTES + len(payload),
        base_sequence=_base_sequence(before, changed.last_offset_delta),
    )
    output = bytearray(HEADER.pack(*sized))
    output += payload
    batch = BatchView(output)
    batch.write_checksum()
    return batch


def _base_sequence(before: BatchHeader, last_offset_delta: int) -> int:
    """Return the base sequence that leaves the last sequence unchanged."""
    if before.base_sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    return (before.last_sequence - last_offset_delta) & _SEQUENCE_MASK
