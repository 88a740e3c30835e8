"""WAL objects, `.kfw`: batches of many partitions in one object, so that one PUT makes all durable.

Layout, big-endian:

    at  0  magic           4 bytes  `KAFW`
    at  4  version         int16    1
    at  6  flags           int16    bit 0: a fence, which holds nothing and ends a stream
    at  8  broker id       int32    whose stream the object belongs to,
    at 12  epoch           int64    in which of its lives,
    at 20  sequence        int64    and at which place, from 0
    at 28  created         int64    milliseconds
    at 36  bodies                   record batches, partition after partition
           table                    a row for each range of bodies, in the order of their positions
    -12    table length    uint32   in bytes
    -8     checksum        uint32   CRC-32C of everything before it
    -4     end magic       4 bytes  `END!`

    a row: topic id (16 bytes), partition (int32), position, length, base offset, last offset,
           max timestamp (int64 each), length of the topic's name (int16), the name in UTF-8

The laws: a range holds all batches of one partition, contiguous in their offsets; the ranges cover
the bodies without a gap or an overlap; bodies are placed, never copied or joined. What is decoded
here has been proven whole, except by `decode_footer`, which sees the tail of an object only.
Whether an object counts, and what its batches hold, is left to those who read streams.
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
VERSION: Final = 1
FENCE_FLAG: Final = 0x01
TOPIC_ID_BYTES: Final = 16
TAIL_BYTES_HINT: Final = 64 * 1024
"""What to ask for first of an object's tail: the table of several hundred ranges fits in it."""

_HEADER: Final = Struct(">4shhiqqq")
_ROW: Final = Struct(">16siqqqqqh")
_TABLE_LENGTH: Final = Struct(">I")
_SEAL: Final = Struct(">I4s")
_FOOTER: Final = Struct(">II4s")
HEADER_BYTES: Final = _HEADER.size
FOOTER_BYTES: Final = _FOOTER.size

EMPTY_BYTES: Final = HEADER_BYTES + FOOTER_BYTES
"""The size of an object that holds nothing."""

assert HEADER_BYTES == 36
assert _ROW.size == 62
assert FOOTER_BYTES == _TABLE_LENGTH.size + _SEAL.size == 12

_place_of = attrgetter("topic", "topic_id", "partition")


class Header(msgspec.Struct, frozen=True, gc=False):
    """Whose object it is, and which."""

    broker_id: int
    epoch: int
    sequence: int
    created_ms: int
    is_fence: bool = False

    def encode(self) -> bytes:
        flags = FENCE_FLAG if self.is_fence else 0
        return _HEADER.pack(
            MAGIC, VERSION, flags, self.broker_id, self.epoch, self.sequence, self.created_ms
        )


class Range(msgspec.Struct, frozen=True, gc=False):
    """Where in an object the batches of a partition lie, and what they span."""

    topic_id: bytes
    topic: str
    partition: int
    position: int
    length: int
    base_offset: int
    last_offset: int
    max_timestamp_ms: int


class PartitionData(msgspec.Struct, frozen=True, gc=False):
    """Batches of a partition that are to be written; several pieces may be of one partition."""

    topic_id: bytes
    topic: str
    partition: int
    body: Buffer
    base_offset: int
    last_offset: int
    max_timestamp_ms: int


class WalObject(msgspec.Struct, frozen=True, gc=False):
    """An object that has been read and found whole."""

    header: Header
    ranges: list[Range]
    buffer: memoryview

    def body(self, of: Range) -> memoryview:
        return self.buffer[of.position : of.position + of.length]


# --- writing --------------------------------------------------------------------------------------


def encode(header: Header, pieces: Sequence[PartitionData]) -> list[Buffer]:
    """The parts of an object: its header, the bodies as they are, its footer.

    Pieces are put in the order of topics and partitions; those of one partition keep the order in
    which they were given, which must be that of their offsets, and become one range.
    """
    assert pieces
    assert not header.is_fence
    parts: list[Buffer] = [header.encode()]
    checksum = crc32c(parts[0])
    rows: list[bytes] = []
    position = HEADER_BYTES
    ordered = sorted(pieces, key=_place_of)
    first = ordered[0]
    length, next_offset, max_timestamp_ms = 0, first.base_offset, first.max_timestamp_ms
    for piece in ordered:
        if piece.partition != first.partition or piece.topic_id != first.topic_id:
            rows.append(_row(first, position, length, next_offset - 1, max_timestamp_ms))
            first, position = piece, position + length
            length, next_offset = 0, piece.base_offset
            max_timestamp_ms = piece.max_timestamp_ms
        body = piece.body
        assert body
        assert next_offset == piece.base_offset <= piece.last_offset, "offsets are contiguous"
        parts.append(body)
        checksum = crc32c(body, checksum)
        length += len(body)
        next_offset = piece.last_offset + 1
        max_timestamp_ms = max(max_timestamp_ms, piece.max_timestamp_ms)
    rows.append(_row(first, position, length, next_offset - 1, max_timestamp_ms))
    parts.append(_footer(rows, checksum))
    return parts


def encode_opening(header: Header) -> list[Buffer]:
    """The parts of the object that opens a stream: it holds nothing and takes the first place."""
    assert not header.is_fence
    return _encode_empty(header)


def encode_fence(header: Header) -> list[Buffer]:
    """The parts of a fence: an object that holds nothing and takes the next place in a stream."""
    assert header.is_fence
    return _encode_empty(header)


def _encode_empty(header: Header) -> list[Buffer]:
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
    """A whole object, proven to be one; `key` is for the message if it is not."""
    view = memoryview(buffer)
    header = decode_header(key, view)
    table_length, stored = _read_footer(key, view)
    computed = crc32c(view[: -_SEAL.size])
    if computed != stored:
        _damaged(key, f"its checksum is {computed:08x}, but it says {stored:08x}")
    table_position = len(view) - FOOTER_BYTES - table_length
    if table_position < HEADER_BYTES:
        _damaged(key, f"a table of {table_length} bytes does not fit its {len(view)}")
    ranges = _read_table(key, view[table_position:-FOOTER_BYTES], table_position)
    if header.is_fence and ranges:
        _damaged(key, f"a fence holds {len(ranges)} ranges")
    return WalObject(header, ranges, view)


def decode_header(key: str, buffer: Buffer) -> Header:
    """The header, from the first bytes of an object."""
    if len(buffer) < HEADER_BYTES:
        _damaged(key, f"{len(buffer)} bytes are too few for its header")
    magic, version, flags, broker_id, epoch, sequence, created_ms = _HEADER.unpack_from(buffer)
    if magic != MAGIC:
        _damaged(key, f"it begins with {magic!r} instead of {MAGIC!r}")
    if version != VERSION:
        _damaged(key, f"version {version} is unknown")
    return Header(broker_id, epoch, sequence, created_ms, is_fence=bool(flags & FENCE_FLAG))


def decode_footer(key: str, suffix: Buffer, object_bytes: int) -> list[Range] | int:
    """The ranges, from the last bytes of an object; or how many of these it takes to know them.

    Only the shape of the table is checked: the checksum covers what is not here.
    """
    view = memoryview(suffix)
    assert len(view) <= object_bytes
    if len(view) < FOOTER_BYTES <= object_bytes:
        return FOOTER_BYTES
    table_length, _ = _read_footer(key, view)
    table_position = object_bytes - FOOTER_BYTES - table_length
    if table_position < HEADER_BYTES:
        _damaged(key, f"a table of {table_length} bytes does not fit its {object_bytes}")
    needed_bytes = table_length + FOOTER_BYTES
    if needed_bytes > len(view):
        return needed_bytes
    table = view[len(view) - needed_bytes : len(view) - FOOTER_BYTES]
    return _read_table(key, table, table_position)


def _read_footer(key: str, view: memoryview) -> tuple[int, int]:
    """The length of the table, and the checksum."""
    if len(view) < FOOTER_BYTES:
        _damaged(key, f"{len(view)} bytes are too few for its footer")
    table_length, checksum, magic = _FOOTER.unpack_from(view, len(view) - FOOTER_BYTES)
    if magic != END_MAGIC:
        _damaged(key, f"it ends with {magic!r} instead of {END_MAGIC!r}")
    return table_length, checksum


def _read_table(key: str, table: memoryview, bodies_end: int) -> list[Range]:
    ranges = []
    position = 0
    body_position = HEADER_BYTES
    while position < len(table):
        name_position = position + _ROW.size
        if name_position > len(table):
            _damaged(key, "its table ends within a row")
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
            _damaged(key, f"its table ends within a name of {name_length} bytes")
        if start != body_position or length <= 0:
            _damaged(key, f"a range of {length} bytes at {start} should begin at {body_position}")
        if not 0 <= base_offset <= last_offset:
            _damaged(key, f"a range spans the offsets {base_offset} to {last_offset}")
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
        _damaged(key, f"its ranges end at {body_position} instead of {bodies_end}")
    return ranges


def _read_name(key: str, name: memoryview) -> str:
    try:
        return str(name, "utf-8")
    except UnicodeDecodeError:
        _damaged(key, "the name of a topic is not UTF-8")


def _damaged(key: str, reason: str) -> NoReturn:
    raise DamagedObjectError(key, reason)
