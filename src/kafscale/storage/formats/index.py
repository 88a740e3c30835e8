r"""Indexes, `.index`: map offsets and timestamps to positions in a segment.

Layout, big-endian:

    at  0  magic           4 bytes  `IDX\0`; `IDX\n` is read as well
    at  4  version         int16    1
    at  6  entry count     int32    n
    at 10  interval        int32    100: maximum number of records between entries
    at 14  reserved        int16    0
    at 16  entries         n x 12   offset (int64) and position (int32) of the start of a batch
    at 16 + 12n            sections, which upstream readers ignore: each a magic (4 bytes), a length
                           (uint32) and that many bytes

    `TIME`  int64: the largest timestamp of the log before this segment, -1 if there is none, -2 if
            unknown; then an int64 per entry: the largest timestamp from its batch up to the next
            entry. The first value makes the timestamps at segment ends ascend even if those of
            producers do not, so that segments can be found by timestamp with a binary search.
    `SIZE`  int64: the size of the segment. An index of another size belongs to a segment that was
            replaced since: its PUT took effect late.
    `CSUM`  uint32: CRC-32C of everything before this section, which is the last one.
    others  are preserved; see `log.state`.

Invariants: entries ascend, and the first is the first batch of the segment, at position 32. A new
entry is added at the first batch that begins `index_interval_bytes` or 100 records after the last
entry. A decoded index is complete and ascending. An index with sections is verified by its
checksum; an upstream index has none, so damage that leaves it ascending is not detected. `verify`
compares an index with its segment. `rebuild` creates an index from its segment, so a damaged index
never makes records unreadable.
"""

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import islice
from operator import lt
from struct import Struct
from typing import Final, NoReturn

from kafscale.errors import DamagedObjectError
from kafscale.records import BatchView
from kafscale.records.checksum import Buffer, crc32c

MAGIC: Final = b"IDX\0"
MAGICS_READ: Final = (MAGIC, b"IDX\n")
VERSION: Final = 1
INTERVAL_RECORDS: Final = 100
FIRST_POSITION: Final = 32
"""The position of the first batch of a segment, after the segment's header."""

SEGMENT_FOOTER_BYTES: Final = 16

TIME_MAGIC: Final = b"TIME"
SIZE_MAGIC: Final = b"SIZE"
CHECKSUM_MAGIC: Final = b"CSUM"
NO_PRIOR_TIMESTAMP: Final = -1
UNKNOWN_PRIOR_TIMESTAMP: Final = -2

_HEADER: Final = Struct(">4shiih")
_ENTRY: Final = Struct(">qi")
_SECTION: Final = Struct(">4sI")
_SIZE: Final = Struct(">q")
HEADER_BYTES: Final = _HEADER.size
ENTRY_BYTES: Final = _ENTRY.size
_CHECKSUM: Final = Struct(">4sII")
_CHECKSUM_BYTES: Final = _CHECKSUM.size - _SECTION.size
_OBJECT_BYTES: Final = 512
"""Approximate memory of an index without entries, in CPython objects."""
_IS_LITTLE_ENDIAN: Final = sys.byteorder == "little"

assert HEADER_BYTES == 16
assert ENTRY_BYTES == 12
assert array("i").itemsize == 4
assert array("q").itemsize == 8


class Index:
    """The entries of an index as columns, and its sections."""

    __slots__ = (
        "max_timestamps",
        "offsets",
        "positions",
        "prior_max_timestamp_ms",
        "sections",
        "segment_bytes",
    )

    def __init__(
        self,
        offsets: "array[int]",
        positions: "array[int]",
        max_timestamps: "array[int] | None" = None,
        prior_max_timestamp_ms: int | None = None,
        sections: Mapping[bytes, bytes] | None = None,
        *,
        segment_bytes: int | None = None,
    ) -> None:
        assert len(offsets) == len(positions) > 0
        assert max_timestamps is None or len(max_timestamps) == len(offsets)
        assert prior_max_timestamp_ms is None or prior_max_timestamp_ms >= NO_PRIOR_TIMESTAMP
        self.offsets = offsets
        self.positions = positions
        self.max_timestamps = max_timestamps
        """Largest timestamp from each entry up to the next one; None if not stored."""
        self.prior_max_timestamp_ms = prior_max_timestamp_ms
        """Largest timestamp of the log before this segment, -1 if empty; None if unknown."""
        self.segment_bytes = segment_bytes
        """The size of the segment; None if not stored."""
        self.sections = dict(sections or {})
        assert not self.sections.keys() & {TIME_MAGIC, SIZE_MAGIC, CHECKSUM_MAGIC}
        assert all(len(magic) == 4 for magic in self.sections)

    def __len__(self) -> int:
        return len(self.offsets)

    def __repr__(self) -> str:
        return f"<Index of {len(self)} entries from offset {self.offsets[0]}>"

    @property
    def max_timestamp_ms(self) -> int | None:
        """The largest timestamp of the segment, if stored."""
        return None if self.max_timestamps is None else max(self.max_timestamps)

    @property
    def log_max_timestamp_ms(self) -> int | None:
        """The largest timestamp of the log up to the segment's end, if known."""
        if self.prior_max_timestamp_ms is None or self.max_timestamps is None:
            return None
        return max(self.prior_max_timestamp_ms, *self.max_timestamps)

    @property
    def cost_bytes(self) -> int:
        """Approximate memory used by the index, for caches."""
        sections_bytes = sum(map(len, self.sections.values()))
        entry_bytes = ENTRY_BYTES if self.max_timestamps is None else ENTRY_BYTES + 8
        return _OBJECT_BYTES + len(self) * entry_bytes + sections_bytes

    def find(self, offset: int) -> int:
        """The last entry at or below `offset`; the first one if all are above."""
        return max(bisect_right(self.offsets, offset) - 1, 0)

    def find_time(self, timestamp_ms: int) -> int | None:
        """The first entry from which a batch reaches `timestamp_ms`, if any does.

        Timestamps need not ascend, so every entry is checked. If the index has no timestamps,
        returns the first entry: the whole segment must be read.
        """
        if self.max_timestamps is None:
            return 0
        return next(
            (index for index, value in enumerate(self.max_timestamps) if value >= timestamp_ms),
            None,
        )

    def encode(self) -> bytes:
        output = bytearray(_HEADER.pack(MAGIC, VERSION, len(self), INTERVAL_RECORDS, 0))
        output += _interleave(self.offsets, self.positions)
        if self.max_timestamps is not None:
            prior = self.prior_max_timestamp_ms
            times = array("q", [UNKNOWN_PRIOR_TIMESTAMP if prior is None else prior])
            times += self.max_timestamps
            _append_section(output, TIME_MAGIC, _to_big_endian(times).tobytes())
        if self.segment_bytes is not None:
            _append_section(output, SIZE_MAGIC, _SIZE.pack(self.segment_bytes))
        for magic, content in self.sections.items():
            _append_section(output, magic, content)
        output += _CHECKSUM.pack(CHECKSUM_MAGIC, _CHECKSUM_BYTES, crc32c(output))
        return bytes(output)


class Builder:
    """Builds an index while a segment is written or read."""

    __slots__ = (
        "_bytes_since",
        "_interval_bytes",
        "_max_timestamps",
        "_offsets",
        "_position",
        "_positions",
        "_records_since",
    )

    def __init__(self, index_interval_bytes: int) -> None:
        assert index_interval_bytes > 0
        self._interval_bytes = index_interval_bytes
        self._offsets = array("q")
        self._positions = array("i")
        self._max_timestamps = array("q")
        self._position = FIRST_POSITION
        self._bytes_since = 0
        self._records_since = 0

    def append(
        self, base_offset: int, record_count: int, size_bytes: int, max_timestamp_ms: int
    ) -> None:
        """Add the next batch of the segment."""
        if (
            not self._offsets
            or self._bytes_since >= self._interval_bytes
            or self._records_since >= INTERVAL_RECORDS
        ):
            self._offsets.append(base_offset)
            self._positions.append(self._position)
            self._max_timestamps.append(max_timestamp_ms)
            self._bytes_since = self._records_since = 0
        elif max_timestamp_ms > self._max_timestamps[-1]:
            self._max_timestamps[-1] = max_timestamp_ms
        self._bytes_since += size_bytes
        self._records_since += record_count
        self._position += size_bytes

    def finish(
        self,
        *,
        prior_max_timestamp_ms: int | None = None,
        sections: Mapping[bytes, bytes] | None = None,
    ) -> Index:
        return Index(
            self._offsets,
            self._positions,
            self._max_timestamps,
            prior_max_timestamp_ms,
            segment_bytes=self._position + SEGMENT_FOOTER_BYTES,
            sections=sections,
        )


def rebuild(
    batches: Iterable[BatchView],
    index_interval_bytes: int,
    *,
    prior_max_timestamp_ms: int | None = None,
) -> Index:
    """Build the index of a segment from all of its batches.

    Other sections cannot be rebuilt, because their state is not contained in the segment.
    """
    builder = Builder(index_interval_bytes)
    for batch in batches:
        builder.append(batch.base_offset, batch.count, len(batch), batch.max_timestamp_ms)
    return builder.finish(prior_max_timestamp_ms=prior_max_timestamp_ms)


def verify(key: str, index: Index, batches: Iterable[BatchView]) -> None:
    """Raise unless every entry points to the start of a batch of the segment."""
    base_offsets: dict[int, int] = {}
    position = FIRST_POSITION
    for batch in batches:
        base_offsets[position] = batch.base_offset
        position += len(batch)
    for offset, position in zip(index.offsets, index.positions, strict=True):
        if base_offsets.get(position) != offset:
            _raise_damaged(key, f"no batch of the segment at {position} with offset {offset}")


# --- reading --------------------------------------------------------------------------------------


def decode(key: str, buffer: Buffer, segment_bytes: int | None = None) -> Index:
    """Decode an index, Kafscale's or upstream's; `key` is used in error messages.

    With the size of the segment, an index of another segment raises, too.
    """
    view, has_checksum = _verify_checksum(key, memoryview(buffer))
    if len(view) < HEADER_BYTES:
        _raise_damaged(key, f"{len(view)} bytes are too few for the header")
    magic, version, count, _, _ = _HEADER.unpack_from(view)
    if magic not in MAGICS_READ:
        _raise_damaged(key, f"magic is {magic!r}, expected {MAGIC!r}")
    if version != VERSION:
        _raise_damaged(key, f"version {version} is unknown")
    end = HEADER_BYTES + count * ENTRY_BYTES
    if count < 1 or end > len(view):
        _raise_damaged(key, f"{len(view)} bytes cannot hold {count} entries")
    offsets, positions = _separate(view[HEADER_BYTES:end])
    if positions[0] != FIRST_POSITION:
        _raise_damaged(key, f"first entry is at {positions[0]}, expected {FIRST_POSITION}")
    if not has_checksum:
        if offsets[0] < 0 or not _is_ascending(offsets) or not _is_ascending(positions):
            _raise_damaged(key, "the entries do not ascend")
        if end < len(view):
            _raise_damaged(key, "it has sections but no checksum")
    sections = _read_sections(key, view, end)
    stored_bytes = _read_size(key, sections.pop(SIZE_MAGIC, None))
    if None not in (stored_bytes, segment_bytes) and stored_bytes != segment_bytes:
        _raise_damaged(key, f"its segment has {segment_bytes} bytes, not {stored_bytes}")
    times = sections.pop(TIME_MAGIC, None)
    prior, max_timestamps = (None, None) if times is None else _read_times(key, times, count)
    return Index(
        offsets, positions, max_timestamps, prior, segment_bytes=stored_bytes, sections=sections
    )


def _verify_checksum(key: str, view: memoryview) -> tuple[memoryview, bool]:
    """Everything but the checksum, and whether there was one; raises if it does not match."""
    position = len(view) - _CHECKSUM.size
    if position < HEADER_BYTES:
        return view, False
    magic, length, stored = _CHECKSUM.unpack_from(view, position)
    if magic != CHECKSUM_MAGIC or length != _CHECKSUM_BYTES:
        return view, False
    computed = crc32c(view[:position])
    if computed != stored:
        _raise_damaged(key, f"checksum mismatch: computed {computed:08x}, stored {stored:08x}")
    return view[:position], True


def _read_sections(key: str, view: memoryview, position: int) -> dict[bytes, bytes]:
    sections: dict[bytes, bytes] = {}
    while position < len(view):
        start = position + _SECTION.size
        if start > len(view):
            _raise_damaged(key, "it ends within a section header")
        magic, length = _SECTION.unpack_from(view, position)
        end = start + length
        if end > len(view):
            _raise_damaged(key, f"it ends within section {magic!r}")
        if magic in sections or magic == CHECKSUM_MAGIC:
            _raise_damaged(key, f"duplicate section {magic!r}")
        sections[magic] = bytes(view[start:end])
        position = end
    return sections


def _read_size(key: str, content: bytes | None) -> int | None:
    if content is None:
        return None
    if len(content) != _SIZE.size:
        _raise_damaged(key, f"{len(content)} bytes are not a segment size")
    (size_bytes,) = _SIZE.unpack(content)
    return int(size_bytes)


def _read_times(key: str, content: bytes, count: int) -> tuple[int | None, "array[int]"]:
    if len(content) != 8 * (count + 1):
        _raise_damaged(key, f"{len(content)} bytes of timestamps do not fit {count} entries")
    times = _to_big_endian(array("q", content))
    prior = times.pop(0)
    if prior < UNKNOWN_PRIOR_TIMESTAMP:
        _raise_damaged(key, f"invalid prior timestamp {prior}")
    return None if prior == UNKNOWN_PRIOR_TIMESTAMP else prior, times


def _raise_damaged(key: str, reason: str) -> NoReturn:
    raise DamagedObjectError(key, reason)


# --- columns and rows -----------------------------------------------------------------------------
#
# An entry has three 32-bit words, two for the offset and one for the position. Slice assignment
# moves the words of all entries at once: about a hundred times faster than a loop over the entries,
# of which the index of a full segment has tens of thousands.


def _interleave(offsets: "array[int]", positions: "array[int]") -> bytes:
    words = array("i", bytes(len(offsets) * ENTRY_BYTES))
    halves = array("i", _to_big_endian(offsets).tobytes())
    words[0::3] = halves[0::2]
    words[1::3] = halves[1::2]
    words[2::3] = _to_big_endian(positions)
    return words.tobytes()


def _separate(entries: memoryview) -> tuple["array[int]", "array[int]"]:
    words = array("i", bytes(entries))
    halves = array("i", bytes(len(words) // 3 * 8))
    halves[0::2] = words[0::3]
    halves[1::2] = words[1::3]
    return _to_big_endian(array("q", halves.tobytes())), _to_big_endian(words[2::3])


def _to_big_endian(values: "array[int]") -> "array[int]":
    """Convert to or from big-endian byte order; a copy unless that is the native order."""
    if not _IS_LITTLE_ENDIAN:
        return values
    copy = values[:]
    copy.byteswap()
    return copy


def _is_ascending(values: "array[int]") -> bool:
    return all(map(lt, values, islice(values, 1, None)))


def _append_section(output: bytearray, magic: bytes, content: bytes) -> None:
    output += _SECTION.pack(magic, len(content))
    output += content
