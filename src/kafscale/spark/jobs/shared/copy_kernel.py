"""The compiled part of rewriting a batch: copies the records that are kept.

Records that keep their deltas are copied byte by byte. If the base offset or the base timestamp of
the batch changes, the two deltas and the length are re-encoded and the rest is copied. The
decoder's `scan` has already validated the bytes; this code checks every bound again, because
compiled code has no bounds checking.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kafscale.spark.codec.decoder_kernel import compiled, inlined

GROWTH_BYTES_MAX: Final = 20
"""The most a record can grow: timestamp delta by nine bytes, offset delta and length by four."""

FAILED: Final = -1

_INT64_MAX: Final = 2**63 - 1
_INT64_MIN: Final = -(2**63)
_LOGICAL: Final = 2**57 - 1
"""Masks the sign bits that an arithmetic shift of 64 bits by seven brings in."""


@inlined
def _read(source: NDArray[np.uint8], position: int, end: int) -> tuple[int, int]:
    """Return the zig-zag varint at `position`, and the position after it or `FAILED`."""
    raw = 0
    shift = 0
    while 0 <= position < end and shift < 64:
        byte = int(source[position])
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return ((raw >> 1) & _INT64_MAX) ^ -(raw & 1), position
        shift += 7
    return 0, FAILED


@compiled
def _width(value: int) -> int:
    """Return the encoded size of a varint."""
    raw = (value << 1) ^ (value >> 63)
    width = 1
    while raw & ~0x7F:
        raw = (raw >> 7) & _LOGICAL
        width += 1
    return width


@compiled
def _write(output: NDArray[np.uint8], position: int, value: int) -> int:
    """Write a varint, which must fit; return the position after it."""
    raw = (value << 1) ^ (value >> 63)
    while raw & ~0x7F:
        output[position] = (raw & 0x7F) | 0x80
        raw = (raw >> 7) & _LOGICAL
        position += 1
    output[position] = raw
    return position + 1


@compiled
def _copy(
    source: NDArray[np.uint8], start: int, end: int, output: NDArray[np.uint8], position: int
) -> int:
    """Copy bytes, which must fit; return the position after them."""
    copied = source[start:end]
    target = output[position : position + end - start]
    for index in range(end - start):
        target[index] = copied[index]
    return position + end - start


@compiled
def copy_records(  # noqa: PLR0917 - compiled functions take no keywords.
    source: NDArray[np.uint8],
    start: int,
    end: int,
    kept: NDArray[np.bool_],
    offset_shift: int,
    timestamp_shift: int,
    output: NDArray[np.uint8],
) -> tuple[int, int, int]:
    """Copy the kept records between two positions, with both deltas shifted.

    Return the number of bytes written, and the least and the greatest timestamp delta before the
    shift; `FAILED` bytes if a length or a position is invalid.
    """
    written = 0
    least, greatest = _INT64_MAX, _INT64_MIN
    position = start
    if not 0 <= start <= end <= source.size:
        return FAILED, least, greatest
    for row in range(kept.size):
        length, content = _read(source, position, end)
        if content == FAILED or length < 1 or length > end - content:
            return FAILED, least, greatest
        record_end = content + length
        timestamp_delta, after = _read(source, content + 1, record_end)
        offset_delta, rest = _read(source, after, record_end)
        if rest == FAILED:  # `_read` passes a failed position on.
            return FAILED, least, greatest
        if kept[row]:
            if record_end - position + GROWTH_BYTES_MAX > output.size - written:
                return FAILED, least, greatest
            least = min(least, timestamp_delta)
            greatest = max(greatest, timestamp_delta)
            if offset_shift == 0 and timestamp_shift == 0:
                written = _copy(source, position, record_end, output, written)
            else:
                timestamp_delta += timestamp_shift
                offset_delta += offset_shift
                new_length = 1 + _width(timestamp_delta) + _width(offset_delta) + record_end - rest
                written = _write(output, written, new_length)
                written = _copy(source, content, content + 1, output, written)
                written = _write(output, written, timestamp_delta)
                written = _write(output, written, offset_delta)
                written = _copy(source, rest, record_end, output, written)
        position = record_end
    if position != end:
        return FAILED, least, greatest
    return written, least, greatest
