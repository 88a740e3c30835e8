"""Segments, `.kfs`: consecutive record batches of a partition in one immutable object.

Layout, big-endian:

    at  0  magic           4 bytes  `KAFS`
    at  4  version         int16    1
    at  6  flags           uint16   bits 0-2: the codec if all batches share one, else 0
    at  8  base offset     int64    of the first record
    at 16  record count    int32
    at 20  created         int64    milliseconds
    at 28  reserved        int32    0
    at 32  batches                  magic 2, contiguous
    -16    checksum        uint32   CRC-32C of all batches; header and footer are not covered
    -12    last offset     int64    of the last record
    -4     end magic       4 bytes  `END!`

Invariants: a segment has at least one batch, its offsets are contiguous, and it is smaller than
2 GiB, so that positions fit into 32 bits. Batches are stored as they were produced, except that
uncompressed ones may be compressed. The parts of an object are written separately, never joined.
`read` verifies a segment: everything except flags, creation time and reserved bytes is covered by a
checksum or compared with the batches, and nothing depends on those three. Readers take the codec
from each batch.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from struct import Struct
from typing import Final, NoReturn

import msgspec

from kafscale.errors import DamagedObjectError, RecordsError
from kafscale.records import BatchView, Codec, recompress, split
from kafscale.records.batch import CONTROL_BIT, LENGTH_OVERHEAD_BYTES, LENGTH_POSITION
from kafscale.records.batch import HEADER as BATCH_HEADER
from kafscale.records.batch import HEADER_BYTES as BATCH_HEADER_BYTES
from kafscale.records.batch import MAGIC as BATCH_MAGIC
from kafscale.records.checksum import Buffer, crc32c
from kafscale.records.compression import CODEC_MASK
from kafscale.storage.formats import index
from kafscale.storage.formats.index import Index

MAGIC: Final = b"KAFS"
END_MAGIC: Final = b"END!"
VERSION: Final = 1
SEGMENT_BYTES_MAX: Final = 2**31 - 1
RECORD_COUNT_MAX: Final = 2**31 - 1
UNTRIED_COUNT_MAX: Final = 15
"""Maximum number of batches that are skipped between attempts to compress incompressible data."""

_HEADER: Final = Struct(">4shHqiqi")
_FOOTER: Final = Struct(">Iq4s")
_LENGTH: Final = Struct(">i")
_NOT_RECOMPRESSED: Final = CODEC_MASK | CONTROL_BIT
"""Attribute bits of batches that are not compressed here: compressed ones and control batches."""
_TIMESTAMP_MS_MIN: Final = -(2**63)
CHECKSUM_STEP_BYTES: Final = 8 * 1024 * 1024
HEADER_BYTES: Final = _HEADER.size
FOOTER_BYTES: Final = _FOOTER.size

assert HEADER_BYTES == 32 == index.FIRST_POSITION
assert FOOTER_BYTES == 16 == index.SEGMENT_FOOTER_BYTES
assert FOOTER_BYTES < BATCH_HEADER_BYTES, "a footer cannot be mistaken for a batch"


class Header(msgspec.Struct, frozen=True, gc=False):
    """The header of a segment."""

    base_offset: int
    count: int
    created_ms: int
    flags: int = 0

    def encode(self) -> bytes:
        return _HEADER.pack(
            MAGIC, VERSION, self.flags, self.base_offset, self.count, self.created_ms, 0
        )


class Footer(msgspec.Struct, frozen=True, gc=False):
    """The footer of a segment."""

    checksum: int
    last_offset: int

    def encode(self) -> bytes:
        return _FOOTER.pack(self.checksum, self.last_offset, END_MAGIC)


class Segment(msgspec.Struct, frozen=True, gc=False):
    """A segment that was read and verified."""

    header: Header
    footer: Footer
    batches: list[BatchView]


class Built(msgspec.Struct, frozen=True, gc=False):
    """A segment with its index, ready to be written."""

    parts: list[Buffer]
    """Header, batches, footer."""
    size_bytes: int
    base_offset: int
    last_offset: int
    count: int
    max_timestamp_ms: int
    entries: Index
    index: bytes


class Builder:
    """Builds a segment from batches that have their offsets."""

    __slots__ = (
        "_checksum",
        "_codecs",
        "_compression",
        "_created_ms",
        "_index",
        "_max_timestamp_ms",
        "_parts",
        "_prior_max_timestamp_ms",
        "_untried_count",
        "_untried_count_max",
        "count",
        "next_offset",
        "size_bytes",
    )

    def __init__(
        self,
        created_ms: int,
        index_interval_bytes: int,
        *,
        compression: Codec | None,
        prior_max_timestamp_ms: int | None,
    ) -> None:
        """Start a segment.

        `compression` applies to batches that arrived uncompressed; None leaves them alone.
        `prior_max_timestamp_ms` is the largest timestamp of the log before this segment, -1 if
        there is none; None if unknown.
        """
        self._created_ms = created_ms
        self._compression = None if compression is Codec.NONE else compression
        self._prior_max_timestamp_ms = prior_max_timestamp_ms
        self._index = index.Builder(index_interval_bytes)
        self._parts: list[Buffer] = [b""]  # Placeholder for the header, which is built last.
        self.size_bytes = HEADER_BYTES + FOOTER_BYTES
        """The size of the segment if it were finished now."""
        self._checksum = 0
        self._codecs = 0  # One bit for each codec.
        self.count = 0
        """Number of records so far."""
        self.next_offset = -1
        """The base offset that the next batch must have."""
        self._max_timestamp_ms = _TIMESTAMP_MS_MIN
        self._untried_count = 0
        self._untried_count_max = 0

    def append(self, batch: BatchView) -> None:
        """Add one batch, which must fit."""
        fitted = self.extend(batch.buffer, (0, len(batch)))
        assert fitted, "the segment exceeds a limit of the format"

    def extend(self, view: memoryview, positions: Sequence[int]) -> bool:
        """Add contiguous batches, up to the first that would exceed a limit of the format.

        `positions` contains the start of each batch and the end of the last one. Returns whether
        all batches were added.
        """
        # This competes with the event loop for the CPU, so each batch costs one header decode, and
        # batches that are stored unchanged are added as one part.
        compression = self._compression
        size_bytes, count, next_offset = self.size_bytes, self.count, self.next_offset
        placed = start = positions[0]
        for end in islice(positions, 1, None):
            (
                base_offset,
                length,
                _,
                magic,
                _,
                attributes,
                last_offset_delta,
                _,
                max_timestamp_ms,
                _,
                _,
                _,
                batch_count,
            ) = BATCH_HEADER.unpack_from(view, start)
            batch_bytes = end - start
            assert magic == BATCH_MAGIC
            assert length == batch_bytes - LENGTH_OVERHEAD_BYTES
            assert next_offset in (-1, base_offset), "offsets are not contiguous"
            if (
                size_bytes + batch_bytes > SEGMENT_BYTES_MAX
                or count + batch_count > RECORD_COUNT_MAX
            ):
                break
            if compression is not None and not attributes & _NOT_RECOMPRESSED:
                smaller = self._compressed(view, start, end, compression)
                if smaller is not None:
                    self._add_part(view[placed:start])
                    self._add_part(smaller)
                    placed = end
                    batch_bytes = len(smaller)
                    attributes = compression
            self._index.append(base_offset, batch_count, batch_bytes, max_timestamp_ms)
            self._codecs |= 1 << (attributes & CODEC_MASK)
            self._max_timestamp_ms = max(self._max_timestamp_ms, max_timestamp_ms)
            size_bytes += batch_bytes
            count += batch_count
            next_offset = base_offset + last_offset_delta + 1
            start = end
        self.size_bytes, self.count, self.next_offset = size_bytes, count, next_offset
        self._add_part(view[placed:start])
        return start == positions[-1]

    def finish(self, sections: Mapping[bytes, bytes] | None = None) -> Built:
        """Return the segment and its index with these sections; ends the builder."""
        assert self.count > 0
        finished = self._index.finish(
            prior_max_timestamp_ms=self._prior_max_timestamp_ms, sections=sections
        )
        # A single bit means a single codec, and its position is the codec's number.
        is_single = self._codecs & (self._codecs - 1) == 0
        flags = self._codecs.bit_length() - 1 if is_single else 0
        header = Header(finished.offsets[0], self.count, self._created_ms, flags)
        footer = Footer(self._checksum, self.next_offset - 1)
        self._parts[0] = header.encode()
        self._parts.append(footer.encode())
        return Built(
            parts=self._parts,
            size_bytes=self.size_bytes,
            base_offset=header.base_offset,
            last_offset=footer.last_offset,
            count=header.count,
            max_timestamp_ms=self._max_timestamp_ms,
            entries=finished,
            index=finished.encode(),
        )

    def _add_part(self, part: Buffer) -> None:
        if part:
            self._parts.append(part)
            self._checksum = crc32c(part, self._checksum)

    def _compressed(
        self, view: memoryview, start: int, end: int, compression: Codec
    ) -> bytearray | None:
        """Compress an uncompressed batch; None if it does not get smaller."""
        if self._untried_count < self._untried_count_max:
            self._untried_count += 1
            return None
        self._untried_count = 0
        smaller = recompress(BatchView(view[start:end]), compression)
        if len(smaller) < end - start:
            self._untried_count_max = 0
            return smaller
        # The next batches are probably incompressible as well: try less and less often.
        self._untried_count_max = min(2 * self._untried_count_max + 1, UNTRIED_COUNT_MAX)
        return None


# --- reading --------------------------------------------------------------------------------------


def decode_header(key: str, buffer: Buffer) -> Header:
    """Decode a header from the first bytes of an object; `key` is used in error messages."""
    if len(buffer) < HEADER_BYTES:
        _raise_damaged(key, f"{len(buffer)} bytes are too few for the header")
    magic, version, flags, base_offset, count, created_ms, _ = _HEADER.unpack_from(buffer)
    if magic != MAGIC:
        _raise_damaged(key, f"magic is {magic!r}, expected {MAGIC!r}")
    if version != VERSION:
        _raise_damaged(key, f"version {version} is unknown")
    if base_offset < 0 or count < 1:
        _raise_damaged(key, f"invalid header: {count} records from offset {base_offset}")
    return Header(base_offset, count, created_ms, flags)


def decode_footer(key: str, buffer: Buffer) -> Footer:
    """Decode a footer from the last bytes of an object."""
    if len(buffer) < FOOTER_BYTES:
        _raise_damaged(key, f"{len(buffer)} bytes are too few for the footer")
    checksum, last_offset, magic = _FOOTER.unpack_from(buffer, len(buffer) - FOOTER_BYTES)
    if magic != END_MAGIC:
        _raise_damaged(key, f"end magic is {magic!r}, expected {END_MAGIC!r}")
    return Footer(checksum, last_offset)


def verify_checksum(key: str, buffer: Buffer) -> tuple[Header, Footer]:
    """Verify a segment by its checksum alone."""
    view = memoryview(buffer)
    header = decode_header(key, view)
    footer = decode_footer(key, view[HEADER_BYTES:])
    computed = 0
    for start in range(HEADER_BYTES, len(view) - FOOTER_BYTES, CHECKSUM_STEP_BYTES):
        # In steps, because other threads wait meanwhile.
        stop = min(start + CHECKSUM_STEP_BYTES, len(view) - FOOTER_BYTES)
        computed = crc32c(view[start:stop], computed)
    if computed != footer.checksum:
        _raise_damaged(
            key, f"checksum mismatch: computed {computed:08x}, stored {footer.checksum:08x}"
        )
    return header, footer


def read(key: str, buffer: Buffer) -> Segment:
    """Decode and verify a whole segment."""
    header, footer = verify_checksum(key, buffer)
    try:
        batches = split(memoryview(buffer)[HEADER_BYTES:-FOOTER_BYTES])
    except RecordsError as error:
        _raise_damaged(key, str(error))
    next_offset = header.base_offset
    count = 0
    for batch in batches:
        if batch.base_offset != next_offset:
            _raise_damaged(key, f"batch at offset {batch.base_offset}, expected at {next_offset}")
        if batch.last_offset_delta < 0:
            _raise_damaged(key, f"batch at offset {next_offset} ends before it begins")
        next_offset = batch.next_offset
        count += batch.count
    if count != header.count:
        _raise_damaged(key, f"it has {count} records, the header says {header.count}")
    if next_offset - 1 != footer.last_offset:
        _raise_damaged(
            key, f"last offset is {next_offset - 1}, the footer says {footer.last_offset}"
        )
    return Segment(header, footer, batches)


def salvage(buffer: Buffer) -> list[BatchView]:
    """Return the whole, contiguous batches of a damaged segment, up to the damage.

    The checksum of each batch verifies it, except for its base offset; offsets must follow from the
    header or, if that is damaged, from the first batch.
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


def _raise_damaged(key: str, reason: str) -> NoReturn:
    raise DamagedObjectError(key, reason)
