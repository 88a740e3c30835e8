"""The loops of log compaction over the records of a batch: which are obsolete, and what is left.

mypyc compiles this module to C, like `scan`; without a compiler it runs as it is, slower, with the
same results. All numbers are native 64-bit integers, and no addition can exceed them.

Invariants: data that are not the records of a batch raise `InvalidRecordError`, and no read goes
past their end. Two different keys are never taken for one: short keys are compared as they are, and
longer ones by a cryptographic hash that is longer than any short key.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from kafscale.errors import InvalidRecordError

if TYPE_CHECKING:  # Interpreted, the annotations of native integers are not evaluated.
    from mypy_extensions import i64

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

DIGEST_BYTES: Final = 64
"""Keys of at least this size are replaced by their hash, which has exactly this size."""

ENTRY_BYTES: Final = 170
"""About what an entry of the map takes besides the key: two objects, and a slot at half load."""


def note_latest(data: bytes, count: i64, base_offset: i64, latest: dict[bytes, int]) -> i64:
    """Note the offset of every key in `latest`, which must only have smaller ones.

    Returns by about how many bytes the map has grown.
    """
    grown: i64 = 0
    position: i64 = 0
    size: i64 = len(data)
    known: i64 = len(latest)
    for _ in range(count):
        end, rest = _enter(data, position, size)
        _, rest = _number(data, rest, end)
        offset_delta, rest = _number(data, rest, end)
        length, rest = _field(data, rest, end)
        if length >= 0:
            key = _identity(data, rest, length)
            latest[key] = base_offset + offset_delta
            if len(latest) != known:
                known += 1
                grown += len(key) + ENTRY_BYTES
        position = end
    _check_end(position, size)
    return grown


def select_kept(
    data: bytes, count: i64, base_offset: i64, latest: dict[bytes, int], tombstones_end: i64
) -> tuple[bytes, i64, bool]:
    """Select the records that are not obsolete.

    A record is obsolete if `latest` has a greater offset for its key, or if it is a tombstone below
    `tombstones_end`. Returns one byte for each record, 1 if it is kept; how many are kept; whether
    a tombstone is among them.
    """
    position: i64 = 0
    size: i64 = len(data)
    if count > size:
        raise InvalidRecordError(f"{size} bytes cannot hold {count} records")
    kept = bytearray(count)
    kept_count: i64 = 0
    has_tombstone = False
    for index in range(count):
        end, rest = _enter(data, position, size)
        _, rest = _number(data, rest, end)
        offset_delta, rest = _number(data, rest, end)
        length, rest = _field(data, rest, end)
        is_kept = True
        if length >= 0:
            offset: i64 = base_offset + offset_delta
            newest = latest.get(_identity(data, rest, length))
            is_kept = newest is None or newest <= offset
            value_length, _ = _number(data, rest + length, end)
            if is_kept and value_length < 0:
                is_kept = offset >= tombstones_end
                has_tombstone = has_tombstone or is_kept
        if is_kept:
            kept[index] = 1
            kept_count += 1
        position = end
    _check_end(position, size)
    return bytes(kept), kept_count, has_tombstone


def copy_kept(
    data: bytes, kept: bytes, offset_shift: i64, timestamp_shift: i64
) -> tuple[bytes, int, int]:
    """Copy the records that are kept, with both deltas shifted.

    `kept` has one byte for each record. Returns the copy, and the least and the greatest timestamp
    delta before the shift. Shifted deltas must fit 64 bits.
    """
    output = bytearray()
    least: i64 = INT64_MAX
    greatest: i64 = INT64_MIN
    position: i64 = 0
    size: i64 = len(data)
    run_start: i64 = 0  # Of the records before `position` that are to be copied as they are.
    count: i64 = len(kept)
    is_shifted = offset_shift != 0 or timestamp_shift != 0
    for index in range(count):
        end, content = _enter(data, position, size)
        timestamp_delta, rest = _number(data, content, end)
        offset_delta, rest = _number(data, rest, end)
        is_kept = kept[index] != 0
        if is_kept:
            least = min(least, timestamp_delta)
            greatest = max(greatest, timestamp_delta)
        if is_shifted or not is_kept:
            if run_start < position:
                output += data[run_start:position]
            run_start = end
        if is_shifted and is_kept:
            deltas = bytearray(1)
            deltas[0] = data[content - 1]  # The attributes.
            _append_number(deltas, timestamp_delta + timestamp_shift)
            _append_number(deltas, offset_delta + offset_shift)
            _append_number(output, len(deltas) + end - rest)
            output += deltas
            output += data[rest:end]
        position = end
    _check_end(position, size)
    if run_start < size:
        output += data[run_start:size]
    return bytes(output), least, greatest


def _enter(data: bytes, position: i64, size: i64) -> tuple[i64, i64]:
    """The end of a record, and the position of its timestamp delta."""
    length, content = _number(data, position, size)
    if length < 1 or length > size - content:
        raise InvalidRecordError(f"a record of {length} bytes does not fit its batch")
    return content + length, content + 1


def _field(data: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """The length of a field, -1 for null, and the position of its bytes."""
    length, rest = _number(data, position, end)
    if length < -1 or length > end - rest:
        raise InvalidRecordError(f"a field of {length} bytes does not fit its record")
    return length, rest


def _identity(data: bytes, position: i64, length: i64) -> bytes:
    """What stands for a key in a map."""
    key = data[position : position + length]
    return key if length < DIGEST_BYTES else blake2b(key, digest_size=DIGEST_BYTES).digest()


def _check_end(position: i64, size: i64) -> None:
    if position != size:
        raise InvalidRecordError(f"{size - position} extra bytes after the last record")


def _number(data: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """Read a zig-zag number of at most 64 bits; return the position after it as well.

    The first byte has the sign in its lowest bit, then six bits of the magnitude; each further byte
    has seven. Read this way, no intermediate result exceeds 64 bits.
    """
    if position >= end:
        raise InvalidRecordError("a number runs past the end")
    byte: i64 = data[position]
    position += 1
    sign: i64 = byte & 1
    number: i64 = (byte & 0x7F) >> 1
    shift: i64 = 6
    while byte > 0x7F:
        if position >= end:
            raise InvalidRecordError("a number runs past the end")
        byte = data[position]
        position += 1
        left: i64 = 63 - shift
        if left < 8 and byte >> left:
            raise InvalidRecordError("a number exceeds 64 bits")
        number |= (byte & 0x7F) << shift
        shift += 7
    return number ^ -sign, position


def _append_number(output: bytearray, number: i64) -> None:
    """Append a zig-zag number."""
    sign: i64 = 1 if number < 0 else 0
    left: i64 = number ^ -sign
    byte: i64 = ((left & 0x3F) << 1) | sign
    left >>= 6
    while left:
        output.append(byte | 0x80)
        byte = left & 0x7F
        left >>= 7
    output.append(byte)
