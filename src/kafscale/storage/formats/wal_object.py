"""WAL objects, `.kfw`: batches of many partitions, made durable by one PUT.

Layout, big-endian:

    at  0  magic           4 bytes  `KAFW`
    at  4  version         int16    2
    at  6  flags           int16    bit 0: a fence, which is empty and ends a stream
    at  8  broker id       int32    the broker that owns the stream
    at 12  epoch           int64    the broker epoch of its session
    at 20  sequence        int64    the number of the object in the stream, from 0
    at 28  created         int64    milliseconds
    at 36  trimmed to      int64    the owner deletes the objects below this sequence
    at 44  bodies                   record batches, partition by partition
           table                    a row for each range of the bodies, in order of position
    -12    table length    uint32   in bytes
    -8     checksum        uint32   CRC-32C of everything before it
    -4     end magic       4 bytes  `END!`

    a row: topic id (16 bytes), partition (int32), position, length, base offset, last offset,
           max timestamp (int64 each), length of the topic's name (int16), the name in UTF-8

Invariants: a range holds all batches of one partition, with contiguous offsets. Ranges cover the
bodies without gaps or overlaps. Bodies are written separately, never copied or joined. A decoded
object is verified, except by `decode_footer`, which sees only the end of an object. Whether an
object is acknowledged is decided by `wal.streams`, by what `trimmed to` says of older objects.
"""

from collections.abc import Sequence
from operator import attrgetter
from struct import Struct
from typing import Final, NoReturn

import msgspec

from kafscale.errors import DamagedObjectError
from kafscale.records.checksum import Buffer, crc32c

MAGIC: Final = b"KAFW"
END_MAGIC: Final = b"END!"
VERSION: Final = 2
FENCE_FLAG: Final = 0x01
TOPIC_ID_BYTES: Final = 16
TAIL_BYTES_HINT: Final = 64 * 1024
"""Bytes to request first from an object's end; the table of several hundred ranges fits."""

_HEADER: Final = Struct(">4shhiqqqq")
_ROW: Final = Struct(">16siqqqqqh")
_TABLE_LENGTH: Final = Struct(">I")
_SEAL: Final = Struct(">I4s")
_FOOTER: Final = Struct(">II4s")
HEADER_BYTES: Final = _HEADER.size
FOOTER_BYTES: Final = _FOOTER.size

EMPTY_BYTES: Final = HEADER_BYTES + FOOTER_BYTES
"""The size of an object without records."""

assert HEADER_BYTES == 44
assert _ROW.size == 62
assert FOOTER_BYTES == _TABLE_LENGTH.size + _SEAL.size == 12

_sort_key = attrgetter("topic", "topic_id", "partition")


class Header(msgspec.Struct, frozen=True, gc=False):
    """Identifies the object: broker, epoch and sequence."""

    broker_id: int
    epoch: int
    sequence: int
    created_ms: int
    trimmed_to: int = 0
    """All objects below this sequence were deletable when this one was sealed."""
    is_fence: bool = False

    def encode(self) -> bytes:
        flags = FENCE_FLAG if self.is_fence else 0
        return _HEADER.pack(
            MAGIC,
            VERSION,
            flags,
            self.broker_id,
            self.epoch,
            self.sequence,
            self.created_ms,
            self.trimmed_to,
        )


class Range(msgspec.Struct, frozen=True, gc=False):
    """The position of a partition's batches in an object, and their offsets."""

    topic_id: bytes
    topic: str
    partition: int
    position: int
    length: int
    base_offset: int
    last_offset: int
    max_timestamp_ms: int


class PartitionData(msgspec.Struct, frozen=True, gc=False):
    """Batches of a partition to be written; a partition may occur several times."""

    topic_id: bytes
    topic: str
    partition: int
    body: Buffer
    base_offset: int
    last_offset: int
    max_timestamp_ms: int


class WalObject(msgspec.Struct, frozen=True, gc=False):
    """An object that was read and verified."""

    header: Header
    ranges: list[Range]
    buffer: memoryview

    def body(self, of: Range) -> memoryview:
        return self.buffer[of.position : of.position + of.length]


# --- writing --------------------------------------------------------------------------------------


def encode(header: Header, partitions: Sequence[PartitionData]) -> list[Buffer]:
    """Return the parts of an object: header, bodies (not copied), footer.

    Bodies are sorted by topic and partition. Several bodies of one partition must be given in
    offset order, and become one range.
    """
    assert partitions
    assert not header.is_fence
    parts: list[Buffer] = [header.encode()]
    checksum = crc32c(parts[0])
    rows: list[bytes] = []
    position = HEADER_BYTES
    ordered = sorted(partitions, key=_sort_key)
    first = ordered[0]
    length, next_offset, max_timestamp_ms = 0, first.base_offset, first.max_timestamp_ms
    for data in ordered:
        if data.partition != first.partition or data.topic_id != first.topic_id:
            rows.append(_row(first, position, length, next_offset - 1, max_timestamp_ms))
            first, position = data, position + length
            length, next_offset = 0, data.base_offset
            max_timestamp_ms = data.max_timestamp_ms
        body = data.body
        assert body
        assert next_offset == data.base_offset <= data.last_offset, "offsets are not contiguous"
        parts.append(body)
        checksum = crc32c(body, checksum)
        length += len(body)
        next_offset = data.last_offset + 1
        max_timestamp_ms = max(max_timestamp_ms, data.max_timestamp_ms)
    rows.append(_row(first, position, length, next_offset - 1, max_timestamp_ms))
    parts.append(_footer(rows, checksum))
    return parts


def encode_empty(header: Header) -> list[Buffer]:
    """Return the parts of an object without records: an opening object, a fence, a trim marker."""
    encoded = header.encode()
    return [encoded, _footer([], crc32c(encoded))]


def _row(
    first: PartitionData, position: int, length: int, last_offset: int, max_timestamp_ms: int
) -> bytes:
    assert len(first.topic_id) == TOPIC_ID_BYTES
    name = first.topic.encode()
    return (
        _ROW.pack(
            first.topic_id,
            first.partition,
            position,
            length,
            first.base_offset,
            last_offset,
            max_timestamp_ms,
            len(name),
        )
        + name
    )


def _footer(rows: Sequence[bytes], checksum: int) -> bytes:
    table = b"".join(rows)
    covered = table + _TABLE_LENGTH.pack(len(table))
    return covered + _SEAL.pack(crc32c(covered, checksum), END_MAGIC)


# --- reading --------------------------------------------------------------------------------------


def decode(key: str, buffer: Buffer) -> WalObject:
    """Decode and verify a whole object; `key` is used in error messages."""
    view = memoryview(buffer)
    header = decode_header(key, view)
    table_length, stored = _read_footer(key, view)
    computed = crc32c(view[: -_SEAL.size])
    if computed != stored:
        _raise_damaged(key, f"checksum mismatch: computed {computed:08x}, stored {stored:08x}")
    table_position = len(view) - FOOTER_BYTES - table_length
    if table_position < HEADER_BYTES:
        _raise_damaged(key, f"a table of {table_length} bytes does not fit into {len(view)} bytes")
    ranges = _read_table(key, view[table_position:-FOOTER_BYTES], table_position)
    if header.is_fence and ranges:
        _raise_damaged(key, f"a fence with {len(ranges)} ranges")
    return WalObject(header, ranges, view)


def decode_header(key: str, buffer: Buffer) -> Header:
    """Decode the header from the first bytes of an object."""
    if len(buffer) < HEADER_BYTES:
        _raise_damaged(key, f"{len(buffer)} bytes are too few for the header")
    magic, version, flags, broker_id, epoch, sequence, created_ms, trimmed_to = _HEADER.unpack_from(
        buffer
    )
    if magic != MAGIC:
        _raise_damaged(key, f"magic is {magic!r}, expected {MAGIC!r}")
    if version != VERSION:
        _raise_damaged(key, f"version {version} is unknown")
    return Header(
        broker_id, epoch, sequence, created_ms, trimmed_to, is_fence=bool(flags & FENCE_FLAG)
    )


def decode_footer(key: str, suffix: Buffer, object_bytes: int) -> list[Range] | int:
    """Return the ranges from the last bytes of an object, or how many bytes are needed for that.

    Only the structure of the table is checked; the checksum covers the whole object.
    """
    view = memoryview(suffix)
    assert len(view) <= object_bytes
    if len(view) < FOOTER_BYTES <= object_bytes:
        return FOOTER_BYTES
    table_length, _ = _read_footer(key, view)
    table_position = object_bytes - FOOTER_BYTES - table_length
    if table_position < HEADER_BYTES:
        _raise_damaged(
            key, f"a table of {table_length} bytes does not fit into {object_bytes} bytes"
        )
    needed_bytes = table_length + FOOTER_BYTES
    if needed_bytes > len(view):
        return needed_bytes
    table = view[len(view) - needed_bytes : len(view) - FOOTER_BYTES]
    return _read_table(key, table, table_position)


def _read_footer(key: str, view: memoryview) -> tuple[int, int]:
    """Return the length of the table, and the checksum."""
    if len(view) < FOOTER_BYTES:
        _raise_damaged(key, f"{len(view)} bytes are too few for the footer")
    table_length, checksum, magic = _FOOTER.unpack_from(view, len(view) - FOOTER_BYTES)
    if magic != END_MAGIC:
        _raise_damaged(key, f"end magic is {magic!r}, expected {END_MAGIC!r}")
    return table_length, checksum


def _read_table(key: str, table: memoryview, bodies_end: int) -> list[Range]:
    ranges = []
    position = 0
    body_position = HEADER_BYTES
    while position < len(table):
        name_position = position + _ROW.size
        if name_position > len(table):
            _raise_damaged(key, "the table ends within a row")
        (
            topic_id,
            partition,
            start,
            length,
            base_offset,
            last_offset,
            max_timestamp_ms,
            name_length,
        ) = _ROW.unpack_from(table, position)
        position = name_position + name_length
        if name_length < 0 or position > len(table):
            _raise_damaged(key, f"the table ends within a name of {name_length} bytes")
        if start != body_position or length <= 0:
            _raise_damaged(key, f"range of {length} bytes at {start}, expected at {body_position}")
        if not 0 <= base_offset <= last_offset:
            _raise_damaged(key, f"invalid offsets of a range: {base_offset} to {last_offset}")
        body_position = start + length
        topic = _read_name(key, table[name_position:position])
        ranges.append(
            Range(
                topic_id,
                topic,
                partition,
                start,
                length,
                base_offset,
                last_offset,
                max_timestamp_ms,
            )
        )
    if body_position != bodies_end:
        _raise_damaged(key, f"the ranges end at {body_position}, expected {bodies_end}")
    return ranges


def _read_name(key: str, name: memoryview) -> str:
    try:
        return str(name, "utf-8")
    except UnicodeDecodeError:
        _raise_damaged(key, "a topic name is not valid UTF-8")


def _raise_damaged(key: str, reason: str) -> NoReturn:
    raise DamagedObjectError(key, reason)
