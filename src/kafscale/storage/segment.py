"""Segments, `.kfs`: a run of a partition's record batches in one immutable object.

Layout, big-endian:

    at  0  magic           4 bytes  `KAFS`
    at  4  version         int16    1
    at  6  flags           uint16   bits 0-2: the codec, where all batches share one; else 0
    at  8  base offset     int64    of the first record
    at 16  record count    int32
    at 20  created         int64    milliseconds
    at 28  reserved        int32    0
    at 32  batches                  of magic 2, one after the other
    -16    checksum        uint32   CRC-32C of all batches; header and footer are not covered
    -12    last offset     int64    of the last record
    -4     end magic       4 bytes  `END!`

The laws: a segment holds at least one batch, its offsets are contiguous, and it stays below 2 GiB,
so that positions fit 32 bits. Batches are written as they came, except that those which came
uncompressed may be compressed; the parts of an object are placed, never joined. What `read` returns
has been proven: all but the flags, the time of creation and the reserved bytes is checked against
the batches or by a checksum, and nothing depends on those. Readers take the codec from each batch.
When a segment is made and where it goes is left to others, as is keeping its index beside it.
"""

from collections.abc import Mapping
from contextlib import suppress
from struct import Struct
from typing import Final, NoReturn

import msgspec

from kafscale.errors import DamagedObjectError, RecordsError
from kafscale.records import BatchView, Codec, recompress, split
from kafscale.records.batch import HEADER_BYTES as BATCH_HEADER_BYTES
from kafscale.records.batch import LENGTH_OVERHEAD_BYTES, LENGTH_POSITION
from kafscale.records.checksum import Buffer, crc32c
from kafscale.records.compression import CODEC_MASK
from kafscale.storage import index

MAGIC: Final = b"KAFS"
END_MAGIC: Final = b"END!"
VERSION: Final = 1
SEGMENT_BYTES_MAX: Final = 2**31 - 1
RECORD_COUNT_MAX: Final = 2**31 - 1
UNTRIED_COUNT_MAX: Final = 15
"""How many batches are left as they came between two tries to compress what does not shrink."""

_HEADER: Final = Struct(">4shHqiqi")
_FOOTER: Final = Struct(">Iq4s")
_LENGTH: Final = Struct(">i")
HEADER_BYTES: Final = _HEADER.size
FOOTER_BYTES: Final = _FOOTER.size

assert HEADER_BYTES == 32 == index.FIRST_POSITION
assert FOOTER_BYTES == 16
assert FOOTER_BYTES < BATCH_HEADER_BYTES, "no footer can be taken for a batch"


class Header(msgspec.Struct, frozen=True, gc=False):
    """What a segment says of itself at its beginning."""

    base_offset: int
    count: int
    created_ms: int
    flags: int = 0

    def encode(self) -> bytes:
        return _HEADER.pack(
            MAGIC, VERSION, self.flags, self.base_offset, self.count, self.created_ms, 0
        )


class Footer(msgspec.Struct, frozen=True, gc=False):
    """What a segment says of itself at its end."""

    checksum: int
    last_offset: int

    def encode(self) -> bytes:
        return _FOOTER.pack(self.checksum, self.last_offset, END_MAGIC)


class Segment(msgspec.Struct, frozen=True, gc=False):
    """A segment that has been read and found whole."""

    header: Header
    footer: Footer
    batches: list[BatchView]


class Built(msgspec.Struct, frozen=True, gc=False):
    """A segment that is ready to be written, with its index."""

    parts: list[Buffer]
    """Header, batches, footer."""
    size_bytes: int
    base_offset: int
    last_offset: int
    count: int
    max_timestamp_ms: int
    index: bytes


class Builder:
    """Makes a segment of batches whose offsets are stamped."""

    __slots__ = (
        "_base_offset", "_checksum", "_codecs", "_compression", "_count", "_created_ms",
        "_index", "_max_timestamp_ms", "_next_offset", "_parts", "_prior_max_timestamp_ms",
        "_size_bytes", "_untried_count", "_untried_count_max",
    )  # fmt: skip

    def __init__(
        self,
        created_ms: int,
        index_interval_bytes: int,
        *,
        compression: Codec | None,
        prior_max_timestamp_ms: int | None,
    ) -> None:
        """Begin a segment.

        `compression` is for batches that came uncompressed; None leaves them so.
        `prior_max_timestamp_ms` is the greatest timestamp of the log before this segment, or -1;
        None if nobody knows.
        """
        self._created_ms = created_ms
        self._compression = None if compression is Codec.NONE else compression
        self._prior_max_timestamp_ms = prior_max_timestamp_ms
        self._index = index.Builder(index_interval_bytes)
        self._parts: list[Buffer] = [b""]  # The header's place: it is known at the end only.
        self._size_bytes = HEADER_BYTES + FOOTER_BYTES
        self._checksum = 0
        self._codecs = 0  # A bit for each codec that was met.
        self._count = 0
        self._base_offset = -1
        self._next_offset = -1
        self._max_timestamp_ms = 0
        self._untried_count = 0
        self._untried_count_max = 0

    @property
    def size_bytes(self) -> int:
        """How large the segment would be if it were finished now."""
        return self._size_bytes

    @property
    def count(self) -> int:
        """How many records it has so far."""
        return self._count

    @property
    def next_offset(self) -> int:
        """The offset that the next batch must have."""
        return self._next_offset

    def fits(self, batch: BatchView) -> bool:
        """Whether the segment would stay within the limits of the format."""
        return (
            self._size_bytes + len(batch) <= SEGMENT_BYTES_MAX
            and self._count + batch.count <= RECORD_COUNT_MAX
        )

    def append(self, batch: BatchView) -> None:
        header = batch.header()
        base_offset, count = header.base_offset, header.record_count
        assert self._next_offset in (-1, base_offset), "offsets are contiguous"
        assert self._size_bytes + len(batch) <= SEGMENT_BYTES_MAX
        assert self._count + count <= RECORD_COUNT_MAX
        max_timestamp_ms = header.max_timestamp_ms
        if self._next_offset == -1:
            self._base_offset = base_offset
            self._max_timestamp_ms = max_timestamp_ms
        self._next_offset = base_offset + header.last_offset_delta + 1
        self._count += count
        self._max_timestamp_ms = max(self._max_timestamp_ms, max_timestamp_ms)
        codec = header.attributes & CODEC_MASK
        if self._compression is not None and codec == Codec.NONE and not batch.is_control:
            batch = self._compressed(batch)
            codec = batch.attributes & CODEC_MASK
        size_bytes = len(batch)
        self._index.append(base_offset, count, size_bytes, max_timestamp_ms)
        self._codecs |= 1 << codec
        self._parts.append(batch.buffer)
        self._checksum = crc32c(batch.buffer, self._checksum)
        self._size_bytes += size_bytes

    def finish(self, sections: Mapping[bytes, bytes] | None = None) -> Built:
        """The segment, and the index with these sections; there is no more to append then."""
        assert self._count > 0
        # A single bit says that there was a single codec, and its place says which.
        is_single = self._codecs & (self._codecs - 1) == 0
        flags = self._codecs.bit_length() - 1 if is_single else 0
        header = Header(self._base_offset, self._count, self._created_ms, flags)
        footer = Footer(self._checksum, self._next_offset - 1)
        self._parts[0] = header.encode()
        self._parts.append(footer.encode())
        finished = self._index.finish(
            prior_max_timestamp_ms=self._prior_max_timestamp_ms, sections=sections
        )
        return Built(
            parts=self._parts,
            size_bytes=self._size_bytes,
            base_offset=header.base_offset,
            last_offset=footer.last_offset,
            count=header.count,
            max_timestamp_ms=self._max_timestamp_ms,
            index=finished.encode(),
        )

    def _compressed(self, batch: BatchView) -> BatchView:
        """A batch that came without compression as it is to be stored, if that is worth it."""
        assert self._compression is not None
        if self._untried_count < self._untried_count_max:
            self._untried_count += 1
            return batch
        self._untried_count = 0
        smaller = recompress(batch, self._compression)
        if len(smaller) < len(batch):
            self._untried_count_max = 0
            return BatchView(smaller)
        # What comes next is probably alike, such as pictures: it is tried less and less often.
        self._untried_count_max = min(2 * self._untried_count_max + 1, UNTRIED_COUNT_MAX)
        return batch


# --- reading --------------------------------------------------------------------------------------


def decode_header(key: str, buffer: Buffer) -> Header:
    """The header, from the first bytes of an object; `key` is for the message if it is none."""
    if len(buffer) < HEADER_BYTES:
        _damaged(key, f"{len(buffer)} bytes are too few for its header")
    magic, version, flags, base_offset, count, created_ms, _ = _HEADER.unpack_from(buffer)
    if magic != MAGIC:
        _damaged(key, f"it begins with {magic!r} instead of {MAGIC!r}")
    if version != VERSION:
        _damaged(key, f"version {version} is unknown")
    if base_offset < 0 or count < 1:
        _damaged(key, f"it says that it has {count} records from offset {base_offset}")
    return Header(base_offset, count, created_ms, flags)


def decode_footer(key: str, buffer: Buffer) -> Footer:
    """The footer, from the last bytes of an object."""
    if len(buffer) < FOOTER_BYTES:
        _damaged(key, f"{len(buffer)} bytes are too few for its footer")
    checksum, last_offset, magic = _FOOTER.unpack_from(buffer, len(buffer) - FOOTER_BYTES)
    if magic != END_MAGIC:
        _damaged(key, f"it ends with {magic!r} instead of {END_MAGIC!r}")
    return Footer(checksum, last_offset)


def read(key: str, buffer: Buffer) -> Segment:
    """A whole segment, proven to be one."""
    view = memoryview(buffer)
    header = decode_header(key, view)
    footer = decode_footer(key, view[HEADER_BYTES:])
    body = view[HEADER_BYTES:-FOOTER_BYTES]
    computed = crc32c(body)
    if computed != footer.checksum:
        _damaged(key, f"its checksum is {computed:08x}, but it says {footer.checksum:08x}")
    try:
        batches = split(body)
    except RecordsError as error:
        _damaged(key, str(error))
    next_offset = header.base_offset
    count = 0
    for batch in batches:
        if batch.base_offset != next_offset:
            _damaged(key, f"the batch at offset {batch.base_offset} should be at {next_offset}")
        if batch.last_offset_delta < 0:
            _damaged(key, f"the batch at offset {next_offset} ends before it begins")
        next_offset = batch.next_offset
        count += batch.count
    if count != header.count:
        _damaged(key, f"it has {count} records, but says that it has {header.count}")
    if next_offset - 1 != footer.last_offset:
        _damaged(key, f"its last offset is {next_offset - 1}, but it says {footer.last_offset}")
    return Segment(header, footer, batches)


def salvage(buffer: Buffer) -> list[BatchView]:
    """The whole and contiguous batches from the beginning of a damaged segment, up to the damage.

    The checksum of each batch is what proves it. That does not cover the offsets; they must follow
    from the header, or, where that is damaged, from the first batch.
    """
    view = memoryview(buffer)
    next_offset: int | None = None
    with suppress(DamagedObjectError):
        next_offset = decode_header("", view).base_offset
    batches: list[BatchView] = []
    position = HEADER_BYTES
    while position + BATCH_HEADER_BYTES <= len(view):
        (length,) = _LENGTH.unpack_from(view, position + LENGTH_POSITION)
        end = position + LENGTH_OVERHEAD_BYTES + max(length, 0)
        try:
            batch = BatchView(view[position:end])
            batch.validate(from_producer=False)
        except RecordsError:
            break
        if next_offset not in (None, batch.base_offset):
            break
        batches.append(batch)
        next_offset = batch.next_offset
        position = end
    return batches


def _damaged(key: str, reason: str) -> NoReturn:
    raise DamagedObjectError(key, reason)
