"""Batches made of others: some records left out, a span of offsets widened or moved.

What Kafka's cleaner keeps is kept: codec, leader epoch, producer, timestamps and the offset of each
record. A batch goes on to span the offsets of records that it lost, because the offsets of a log
are contiguous; and where batches around it vanish, it takes over their span. Its last sequence
stays what it was in any case, because that is what a broker remembers a producer by.

The delete horizon is KIP-534's: marks of deleted keys may go when it has passed. It is written when
compaction meets them first, in the place of the base timestamp, and all deltas are written anew, so
that every reader still finds the right times.
"""

from struct import Struct
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kafscale.errors import DamagedObjectError
from kafscale.records import BatchView, TimestampType, iterate
from kafscale.records.batch import (
    BASE_SEQUENCE_POSITION,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    LAST_OFFSET_DELTA_POSITION,
    LENGTH_OVERHEAD_BYTES,
    NO_SEQUENCE,
    BatchHeader,
)
from kafscale.records.compression import compress
from kafscale.spark.jobs.compact.copy_kernel import FAILED, GROWTH_BYTES_MAX, copy_records
from kafscale.spark.jobs.shared.record_scan import payload_of

SPAN_MAX: Final = 2**31 - 1
"""How many offsets a batch can span; its format would allow for one more."""

HORIZON_MS_MAX: Final = 2**62
"""Beyond any time, but such that no delta from it leaves 64 bits."""

_SEQUENCE_MASK: Final = 0x7FFF_FFFF
_INT32: Final = Struct(">i")
_INT64_MIN: Final = -(2**63)


def rebuilt(  # noqa: PLR0917 - a batch, and where its records lie.
    key: str,
    batch: BatchView,
    source: NDArray[np.uint8],
    position: int,
    size_bytes: int,
    kept: NDArray[np.bool_],
    *,
    base_offset: int | None = None,
    horizon_ms: int | None = None,
) -> BatchView:
    """The batch with only some of its records, of which there must be one.

    Its records lie decompressed in `source`. A new base offset must not be beyond any of them; the
    object that the batch is of is called `key`.
    """
    assert kept.any()
    header = batch.header()
    if header.base_timestamp_ms < -HORIZON_MS_MAX:
        horizon_ms = None  # Times before all times: such marks stay for good.
    new_base = header.base_offset if base_offset is None else base_offset
    base_ms = header.base_timestamp_ms if horizon_ms is None else horizon_ms
    output = np.empty(size_bytes + GROWTH_BYTES_MAX * (kept.size + 1), np.uint8)
    written, least, greatest = copy_records(
        source,
        position,
        position + size_bytes,
        kept,
        header.base_offset - new_base,
        header.base_timestamp_ms - base_ms,
        output,
    )
    if written == FAILED:
        raise DamagedObjectError(key, f"the records of {batch!r} cannot be copied")
    if horizon_ms is not None and header.base_timestamp_ms + least - horizon_ms < _INT64_MIN:
        return rebuilt(key, batch, source, position, size_bytes, kept, base_offset=base_offset)
    max_ms = header.max_timestamp_ms
    if batch.timestamp_type is TimestampType.CREATE_TIME:
        max_ms = header.base_timestamp_ms + greatest
    changed = header._replace(
        base_offset=new_base,
        attributes=header.attributes | (DELETE_HORIZON_BIT if horizon_ms is not None else 0),
        last_offset_delta=header.base_offset + header.last_offset_delta - new_base,
        base_timestamp_ms=base_ms,
        max_timestamp_ms=max_ms,
        record_count=int(np.count_nonzero(kept)),
    )
    return _assembled(changed, header, compress(batch.codec, output[:written].tobytes()))


def widened(batch: BatchView, last_offset: int) -> BatchView:
    """The batch, with a span that goes on to an offset."""
    header = batch.header()
    delta = last_offset - header.base_offset
    assert header.last_offset_delta <= delta < SPAN_MAX
    output = bytearray(batch.buffer)
    _INT32.pack_into(output, LAST_OFFSET_DELTA_POSITION, delta)
    _INT32.pack_into(output, BASE_SEQUENCE_POSITION, _base_sequence(header, delta))
    changed = BatchView(output)
    changed.write_checksum()
    return changed


def moved(key: str, batch: BatchView, base_offset: int) -> BatchView | None:
    """The batch with another base offset; None if nothing is left of it from there on."""
    kept = np.array([record.offset >= base_offset for record in iterate(batch)], np.bool_)
    if not kept.any():
        return None
    source = np.frombuffer(payload_of(batch), np.uint8)
    source.flags.writeable = False
    return rebuilt(key, batch, source, 0, source.size, kept, base_offset=base_offset)


def last_record_of(key: str, batch: BatchView) -> BatchView:
    """The batch with its last record only."""
    source = np.frombuffer(payload_of(batch), np.uint8)
    source.flags.writeable = False
    kept = np.zeros(batch.count, np.bool_)
    kept[-1:] = True
    return rebuilt(key, batch, source, 0, source.size, kept)


def _assembled(changed: BatchHeader, before: BatchHeader, payload: bytes) -> BatchView:
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
    """The base sequence with which the last one stays what it was."""
    if before.base_sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    return (before.last_sequence - last_offset_delta) & _SEQUENCE_MASK
