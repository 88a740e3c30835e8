"""WAL objects, `.kfw`: batches of many partitions, made durable by one PUT.

Layout, big-endian:

    header                          56 bytes
    table                           a row for each range of the bodies, in order of position
    bodies                          record batches, partition by partition
    table and header again
    -8     checksum        uint32   CRC-32C of everything before it
    -4     end magic       4 bytes  `END!`

    the header:
    at  0  magic           4 bytes  `KAFW`
    at  4  version         int16    3
    at  6  flags           int16    bit 0: a fence, which is empty and ends a stream
                                    bits 1-14: the number of ranges with batches of transactions,
                                    which come first; 16383 means that any range may have some
    at  8  broker id       int32    the broker that owns the stream
    at 12  epoch           int64    the broker epoch of its session
    at 20  sequence        int64    the number of the object in the stream, from 0
    at 28  created         int64    milliseconds
    at 36  trimmed to      int64    the owner deletes the objects below this sequence
    at 44  table length    uint32   in bytes
    at 48  table checksum  uint32   CRC-32C of the table
    at 52  checksum        uint32   CRC-32C of the header before it

    a row: topic id (16 bytes), partition (int32), length, base offset, last offset, max timestamp
           (int64 each), length of the topic's name (int16), the name in UTF-8

Invariants: a range holds all batches of one partition, with contiguous offsets. Ranges cover the
bodies without gaps or overlaps. Bodies are written separately, never copied or joined. Whatever is
decoded is verified. Header and table are written twice, with checksums of their own: an object that
is damaged in one place, or has lost its end, still says which offsets it had (`salvage`). Whether
an object is acknowledged is decided by `wal.streams`, by what `trimmed to` says of older objects.

The flags show which partitions have transactional or control batches, so that readers of the bucket
need not read the batches of all others to know what is committed.
"""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from struct import Struct
from typing import Final, NoReturn

import msgspec

from kafscale.errors import DamagedObjectError
from kafscale.records.checksum import Buffer, crc32c

MAGIC: Final = b"KAFW"
END_MAGIC: Final = b"END!"
VERSION: Final = 3
FENCE_FLAG: Final = 0x01
TRANSACTIONAL_COUNT_SHIFT: Final = 1
TRANSACTIONAL_COUNT_MAX: Final = 0x3FFF
TOPIC_ID_BYTES: Final = 16
TAIL_BYTES_HINT: Final = 64 * 1024
"""Bytes to request first from an object's end; the table of several hundred ranges fits."""

_HEADER: Final = Struct(">4shhiqqqqII")
_CHECKSUM: Final = Struct(">I")
_ROW: Final = Struct(">16siqqqqh")
_SEAL: Final = Struct(">I4s")
HEADER_BYTES: Final = _HEADER.size + _CHECKSUM.size
FOOTER_BYTES: Final = HEADER_BYTES + _SEAL.size
"""The end of an object: its header again, and the seal."""

EMPTY_BYTES: Final = HEADER_BYTES + FOOTER_BYTES
"""The size of an object without records."""

assert HEADER_BYTES == 56
assert _ROW.size == 54
assert FOOTER_BYTES == 64

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
    is_transactional: bool = False
    """Whether transactional or control batches may be among them."""


class PartitionData(msgspec.Struct, frozen=True, gc=False):
    """Batches of a partition to be written; a partition may occur several times."""

    topic_id: bytes
    topic: str
    partition: int
    body: Buffer
    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    is_transactional: bool = False
    """Whether transactional or control batches are among them."""


class WalObject(msgspec.Struct, frozen=True, gc=False):
    """An object that was read and verified."""

    header: Header
    ranges: list[Range]
    buffer: memoryview

    def body(self, of: Range) -> memoryview:
        return self.buffer[of.position : of.position + of.length]


# --- writing --------------------------------------------------------------------------------------


def encode(header: Header, partitions: Sequence[PartitionData]) -> list[Buffer]:
    """Return the parts of an object: head, bodies (not copied), tail.

    Bodies are sorted by topic and partition, those with transactions first. Several bodies of one
    partition must be given in offset order, and become one range.
    """
    assert partitions
    assert not header.is_fence
    bodies: list[Buffer] = []
    rows: list[bytes] = []
    ordered = sorted(partitions, key=_sort_key)
    transactional = {_place(data) for data in ordered if data.is_transactional}
    if transactional:
        ordered.sort(key=lambda data: _place(data) not in transactional)
    first = ordered[0]
    length, next_offset, max_timestamp_ms = 0, first.base_offset, first.max_timestamp_ms
    for data in ordered:
        if data.partition != first.partition or data.topic_id != first.topic_id:
            rows.append(_row(first, length, next_offset - 1, max_timestamp_ms))
            first, length, next_offset = data, 0, data.base_offset
            max_timestamp_ms = data.max_timestamp_ms
        body = data.body
        assert body
        assert next_offset == data.base_offset <= data.last_offset, "offsets are not contiguous"
        bodies.append(body)
        length += len(body)
        next_offset = data.last_offset + 1
        max_timestamp_ms = max(max_timestamp_ms, data.max_timestamp_ms)
    rows.append(_row(first, length, next_offset - 1, max_timestamp_ms))
    return _parts(header, b"".join(rows), bodies, len(transactional))


def _place(data: PartitionData) -> tuple[bytes, int]:
    return data.topic_id, data.partition


def encode_empty(header: Header) -> list[Buffer]:
    """Return the parts of an object without records: an opening object, a fence, a trim marker."""
    return _parts(header, b"", [])


def _row(first: PartitionData, length: int, last_offset: int, max_timestamp_ms: int) -> bytes:
    assert len(first.topic_id) == TOPIC_ID_BYTES
    name = first.topic.encode()
    return (
        _ROW.pack(
            first.topic_id,
            first.partition,
            length,
            first.base_offset,
            last_offset,
            max_timestamp_ms,
            len(name),
        )
        + name
    )


def _parts(
    header: Header, table: bytes, bodies: Iterable[Buffer], transactional_count: int = 0
) -> list[Buffer]:
    start = _encode_header(header, table, min(transactional_count, TRANSACTIONAL_COUNT_MAX))
    head, tail = start + table, table + start
    checksum = crc32c(head)
    for body in bodies:
        checksum = crc32c(body, checksum)
    return [head, *bodies, tail + _SEAL.pack(crc32c(tail, checksum), END_MAGIC)]


def _encode_header(header: Header, table: bytes, transactional_count: int) -> bytes:
    flags = FENCE_FLAG if header.is_fence else transactional_count << TRANSACTIONAL_COUNT_SHIFT
    encoded = _HEADER.pack(
        MAGIC,
        VERSION,
        flags,
        header.broker_id,
        header.epoch,
        header.sequence,
        header.created_ms,
        header.trimmed_to,
        len(table),
        crc32c(table),
    )
    return encoded + _CHECKSUM.pack(crc32c(encoded))


# --- reading --------------------------------------------------------------------------------------


class _Head(msgspec.Struct, frozen=True, gc=False):
    """A header, with what it says of the table."""

    header: Header
    table_length: int
    table_checksum: int
    transactional_count: int
    """How many ranges, from the first, have batches of transactions."""

    @property
    def bodies_position(self) -> int:
        return HEADER_BYTES + self.table_length


def decode(key: str, buffer: Buffer) -> WalObject:
    """Decode and verify a whole object; `key` is used in error messages."""
    view = memoryview(buffer)
    head = _read_head(key, view)
    stored = _read_seal(key, view)
    computed = crc32c(view[: -_SEAL.size])
    if computed != stored:
        _raise_damaged(key, f"checksum mismatch: computed {computed:08x}, stored {stored:08x}")
    ranges = _read_table(key, head, view[HEADER_BYTES : head.bodies_position])
    _check_ranges(key, head, ranges, len(view))
    return WalObject(head.header, ranges, view)


def decode_header(key: str, buffer: Buffer) -> Header:
    """Decode the header from the first bytes of an object, or from its last `FOOTER_BYTES`."""
    return _read_head(key, memoryview(buffer)).header


def decode_footer(key: str, suffix: Buffer, object_bytes: int) -> list[Range] | int:
    """Return the ranges from the last bytes of an object, or how many bytes are needed for that."""
    view = memoryview(suffix)
    assert len(view) <= object_bytes
    if len(view) < FOOTER_BYTES <= object_bytes:
        return FOOTER_BYTES
    _read_seal(key, view)
    head = _read_head(key, view[-FOOTER_BYTES:])
    needed_bytes = FOOTER_BYTES + head.table_length
    if len(view) < needed_bytes <= object_bytes:
        return needed_bytes
    ranges = _read_table(key, head, view[-needed_bytes:-FOOTER_BYTES])
    _check_ranges(key, head, ranges, object_bytes)
    return ranges


def salvage(key: str, buffer: Buffer) -> tuple[Header, list[Range]]:
    """Return header and ranges of an object that may be damaged, or may have lost its end.

    Raises `DamagedObjectError` if both copies are damaged. Ranges may exceed the object.
    """
    view = memoryview(buffer)
    try:
        head = _read_head(key, view)
        return head.header, _read_table(key, head, view[HEADER_BYTES : head.bodies_position])
    except DamagedObjectError:
        head = _read_head(key, view[-FOOTER_BYTES:])
        table = view[-FOOTER_BYTES - head.table_length : -FOOTER_BYTES]
        return head.header, _read_table(key, head, table)


def _read_head(key: str, view: memoryview) -> _Head:
    if len(view) < HEADER_BYTES:
        _raise_damaged(key, f"{len(view)} bytes are too few for the header")
    (
        magic,
        version,
        flags,
        broker_id,
        epoch,
        sequence,
        created_ms,
        trimmed_to,
        table_length,
        table_checksum,
    ) = _HEADER.unpack_from(view)
    if magic != MAGIC:
        _raise_damaged(key, f"magic is {magic!r}, expected {MAGIC!r}")
    if version != VERSION:
        _raise_damaged(key, f"version {version} is unknown")
    (stored,) = _CHECKSUM.unpack_from(view, _HEADER.size)
    if crc32c(view[: _HEADER.size]) != stored:
        _raise_damaged(key, "checksum mismatch in the header")
    is_fence = bool(flags & FENCE_FLAG)
    header = Header(broker_id, epoch, sequence, created_ms, trimmed_to, is_fence=is_fence)
    transactional_count = flags >> TRANSACTIONAL_COUNT_SHIFT & TRANSACTIONAL_COUNT_MAX
    return _Head(header, table_length, table_checksum, transactional_count)


def _read_seal(key: str, view: memoryview) -> int:
    """Return the checksum of the object."""
    if len(view) < FOOTER_BYTES:
        _raise_damaged(key, f"{len(view)} bytes are too few for the footer")
    checksum: int
    checksum, magic = _SEAL.unpack_from(view, len(view) - _SEAL.size)
    if magic != END_MAGIC:
        _raise_damaged(key, f"end magic is {magic!r}, expected {END_MAGIC!r}")
    return checksum


def _check_ranges(key: str, head: _Head, ranges: Sequence[Range], object_bytes: int) -> None:
    if head.header.is_fence and ranges:
        _raise_damaged(key, f"a fence with {len(ranges)} ranges")
    bodies_bytes = sum(range_.length for range_ in ranges)
    expected = EMPTY_BYTES + 2 * head.table_length + bodies_bytes
    if object_bytes != expected:
        _raise_damaged(key, f"{object_bytes} bytes, expected {expected} for its ranges")


def _read_table(key: str, head: _Head, table: memoryview) -> list[Range]:
    if len(table) != head.table_length:
        _raise_damaged(key, f"{len(table)} bytes of a table of {head.table_length} bytes")
    if crc32c(table) != head.table_checksum:
        _raise_damaged(key, "checksum mismatch in the table")
    ranges: list[Range] = []
    position = 0
    body_position = head.bodies_position
    has_unlimited = head.transactional_count == TRANSACTIONAL_COUNT_MAX
    while position < len(table):
        name_position = position + _ROW.size
        if name_position > len(table):
            _raise_damaged(key, "the table ends within a row")
        topic_id, partition, length, base_offset, last_offset, max_timestamp_ms, name_length = (
            _ROW.unpack_from(table, position)
        )
        position = name_position + name_length
        if name_length < 0 or position > len(table):
            _raise_damaged(key, f"the table ends within a name of {name_length} bytes")
        if length <= 0:
            _raise_damaged(key, f"a range of {length} bytes")
        if not 0 <= base_offset <= last_offset:
            _raise_damaged(key, f"invalid offsets of a range: {base_offset} to {last_offset}")
        topic = _read_name(key, table[name_position:position])
        ranges.append(
            Range(
                topic_id,
                topic,
                partition,
                body_position,
                length,
                base_offset,
                last_offset,
                max_timestamp_ms,
                has_unlimited or len(ranges) < head.transactional_count,
            )
        )
        body_position += length
    return ranges


def _read_name(key: str, name: memoryview) -> str:
    try:
        return str(name, "utf-8")
    except UnicodeDecodeError:
        _raise_damaged(key, "a topic name is not valid UTF-8")


def _raise_damaged(key: str, reason: str) -> NoReturn:
    raise DamagedObjectError(key, reason)
