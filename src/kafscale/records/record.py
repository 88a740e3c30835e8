"""Records, and how to read them from a batch.

A record, after a varint with its length: attributes (one byte, unused), timestamp delta, offset
delta, key, value, headers. Lengths and deltas are zig-zag varints, with seven bits per byte, least
significant first; the length of null is -1. A varint has 32 bits in at most five bytes, a varlong
64 bits in at most ten.

Invariant: whatever the bytes, reading yields consistent records or raises a `RecordsError`, and
uses no more memory than the limit and one record. A corrupt record raises when it is reached; a
caller that needs all or nothing creates a list first.

Reading costs time per record, so it is for tools, tests, conversions and small scans.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from kafscale.errors import InvalidRecordError
from kafscale.records.batch import BatchView, TimestampType
from kafscale.records.compression import DECOMPRESSED_BYTES_MAX, decompress

RECORD_BYTES_MIN: Final = 7
"""Length, attributes, two deltas, two lengths and a count, one byte each."""
HEADER_BYTES_MIN: Final = 2
_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1


VARINT_BITS: Final = 32
VARLONG_BITS: Final = 64


def read_varint(buffer: bytes, position: int) -> tuple[int, int]:
    """Return the number at `position`, and the position after it."""
    return _read(buffer, position, VARINT_BITS)


def read_varlong(buffer: bytes, position: int) -> tuple[int, int]:
    """Return the number at `position`, and the position after it."""
    return _read(buffer, position, VARLONG_BITS)


def append_varint(output: bytearray, value: int) -> None:
    _append(output, value, VARINT_BITS)


def append_varlong(output: bytearray, value: int) -> None:
    _append(output, value, VARLONG_BITS)


def _read(buffer: bytes, position: int, bits: int) -> tuple[int, int]:
    raw = 0
    shift = 0
    try:
        while (byte := buffer[position]) > 0x7F:
            raw |= (byte & 0x7F) << shift
            shift += 7
            position += 1
            if shift >= bits:
                raise InvalidRecordError(f"a variable-length integer exceeds {bits} bits")
    except IndexError:
        raise InvalidRecordError("a variable-length integer runs past the end") from None
    raw |= byte << shift
    if raw >> bits:
        raise InvalidRecordError(f"a variable-length integer exceeds {bits} bits")
    return (raw >> 1) ^ -(raw & 1), position + 1


def _append(output: bytearray, value: int, bits: int) -> None:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise InvalidRecordError(f"{value} does not fit a variable-length integer of {bits} bits")
    raw = (value << 1) ^ (value >> bits - 1)
    while raw > 0x7F:
        output.append(raw & 0x7F | 0x80)
        raw >>= 7
    output.append(raw)


class Header(NamedTuple):
    """A record header; keys need not be unique."""

    key: str
    """Invalid UTF-8 is read with replacement characters, as in Java's clients."""
    value: bytes | None


class Record(msgspec.Struct, frozen=True, gc=False):
    """A record with its offset."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def inflate(batch: BatchView, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """Return the decompressed records of a batch: `count` of them, encoded and contiguous."""
    return decompress(batch.codec, batch.payload, decompressed_bytes_max)


def iterate(
    batch: BatchView, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[Record]:
    """Yield the records of a batch; does not verify its checksum (see `BatchView.validate`)."""
    data = inflate(batch, decompressed_bytes_max=decompressed_bytes_max)
    count = batch.count
    if not 0 <= count <= len(data) // RECORD_BYTES_MIN:
        raise InvalidRecordError(f"invalid record count {count} in a batch of {len(data)} bytes")
    base_offset, last_offset_delta = batch.base_offset, batch.last_offset_delta
    base_timestamp_ms = batch.base_timestamp_ms
    append_time_ms: int | None = None
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        append_time_ms = batch.max_timestamp_ms
    position = 0
    for _ in range(count):
        length, start = read_varint(data, position)
        position = start + length
        if length < 0 or position > len(data):
            raise InvalidRecordError(f"a record of {length} bytes does not fit its batch")
        fields = _read_fields(data, start, position)
        timestamp_delta, offset_delta, key, value, headers = fields
        if not 0 <= offset_delta <= last_offset_delta:
            raise InvalidRecordError(f"offset delta {offset_delta} exceeds {last_offset_delta}")
        timestamp_ms = base_timestamp_ms + timestamp_delta
        if not _INT64_MIN <= timestamp_ms <= _INT64_MAX:
            raise InvalidRecordError(f"timestamp {timestamp_ms} does not fit 64 bits")
        if append_time_ms is not None:
            timestamp_ms = append_time_ms
        yield Record(base_offset + offset_delta, timestamp_ms, key, value, headers)
    if position != len(data):
        raise InvalidRecordError(f"{len(data) - position} extra bytes after the last record")


def _read_fields(
    data: bytes, position: int, end: int
) -> tuple[int, int, bytes | None, bytes | None, tuple[Header, ...]]:
    """Read timestamp delta, offset delta, key, value and headers between `position` and `end`.

    A field may extend into the next record until the last check raises, but never past the data.
    """
    timestamp_delta, position = read_varlong(data, position + 1)
    offset_delta, position = read_varint(data, position)
    key, position = _read_bytes(data, position)
    value, position = _read_bytes(data, position)
    count, position = read_varint(data, position)
    if not 0 <= count <= max(end - position, 0) // HEADER_BYTES_MIN:
        raise InvalidRecordError(f"invalid header count {count}")
    headers: tuple[Header, ...] = ()
    if count:
        read = []
        for _ in range(count):
            name, position = _read_bytes(data, position)
            if name is None:
                raise InvalidRecordError("a header key is null")
            content, position = _read_bytes(data, position)
            read.append(Header(name.decode("utf-8", "replace"), content))
        headers = tuple(read)
    if position != end:
        raise InvalidRecordError(f"record length and fields differ by {position - end} bytes")
    return timestamp_delta, offset_delta, key, value, headers


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length == -1:
        return None, position
    end = position + length
    if length < 0 or end > len(data):
        raise InvalidRecordError(f"a field of {length} bytes does not fit its batch")
    return data[position:end], end
