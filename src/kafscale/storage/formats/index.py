r"""Indexes, `.index`: at which byte of a segment to begin to read for an offset, or for a time.

Layout, big-endian:

    at  0  magic           4 bytes  `IDX\0`; `IDX\n` is read as well
    at  4  version         int16    1
    at  6  entry count     int32    n
    at 10  interval        int32    100: the records after which a new entry is made at the latest
    at 14  reserved        int16    0
    at 16  entries         n x 12   offset (int64) and position (int32) of the start of a batch
    at 16 + 12n            sections, which other readers of the format never reach: each a magic
                           (4 bytes), a length (uint32) and as many bytes

    `TIME`  int64: the greatest timestamp of the log before this segment, -1 if it has none, -2 if
            it is not known; then an int64 an entry: the greatest from its batch up to the next
            entry. The former makes the times at the ends of segments ascend, whatever producers
            say, so that segments can be found by time in the way that they are by offset.
    `CSUM`  uint32: CRC-32C of everything before this section, which is the last of them.
    others  are kept as they are, for those who know what they mean.

The laws: entries ascend, and the first is the first batch of the segment, at 32. A new entry is
made at the first batch that begins `index_interval_bytes` or 100 records after the last one. What
is decoded here ascends and is whole; an index with sections is proven by its checksum, while one of
upstream's, which has neither, can hide damage that leaves it ascending. Whether it fits a segment
can only be seen there, by `verify`. An index can always be made again from its segment, by
`rebuild`, which is why a damaged one never stops anybody.
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
"""Where the first batch of a segment lies: after the segment's header."""

TIME_MAGIC: Final = b"TIME"
CHECKSUM_MAGIC: Final = b"CSUM"
NO_PRIOR_TIMESTAMP: Final = -1
UNKNOWN_PRIOR_TIMESTAMP: Final = -2

_HEADER: Final = Struct(">4shiih")
_ENTRY: Final = Struct(">qi")
_SECTION: Final = Struct(">4sI")
HEADER_BYTES: Final = _HEADER.size
ENTRY_BYTES: Final = _ENTRY.size
_CHECKSUM: Final = Struct(">4sII")
_CHECKSUM_BYTES: Final = _CHECKSUM.size - _SECTION.size
_OBJECT_BYTES: Final = 512
"""What an index costs before its first entry, in CPython's objects, roughly."""
_IS_LITTLE_ENDIAN: Final = sys.byteorder == "little"

assert HEADER_BYTES == 16
assert ENTRY_BYTES == 12
assert array("i").itemsize == 4
assert array("q").itemsize == 8


class Index:
    """The entries of an index in columns, and its sections."""

    __slots__ = ("max_timestamps", "offsets", "positions", "prior_max_timestamp_ms", "sections")

    def __init__(
        self,
        offsets: "array[int]",
        positions: "array[int]",
        max_timestamps: "array[int] | None" = None,
        prior_max_timestamp_ms: int | None = None,
        sections: Mapping[bytes, bytes] | None = None,
    ) -> None:
        assert len(offsets) == len(positions) > 0
        assert max_timestamps is None or len(max_timestamps) == len(offsets)
        assert prior_max_timestamp_ms is None or prior_max_timestamp_ms >= NO_PRIOR_TIMESTAMP
        self.offsets = offsets
        self.positions = positions
        self.max_timestamps = max_timestamps
        """Of the batches from each entry up to the next; None where nobody has kept them."""
        self.prior_max_timestamp_ms = prior_max_timestamp_ms
        """Of the log before this segment, -1 if there is nothing; None if it is not known."""
        self.sections = dict(sections or {})
        assert not self.sections.keys() & {TIME_MAGIC, CHECKSUM_MAGIC}
        assert all(len(magic) == 4 for magic in self.sections)

    def __len__(self) -> int:
        return len(self.offsets)

    def __repr__(self) -> str:
        return f"<Index of {len(self)} entries from offset {self.offsets[0]}>"

    @property
    def max_timestamp_ms(self) -> int | None:
        """The greatest timestamp of the segment, if times were kept."""
        return None if self.max_timestamps is None else max(self.max_timestamps)

    @property
    def log_max_timestamp_ms(self) -> int | None:
        """The greatest timestamp of the log up to the segment's end, if that is known."""
        if self.prior_max_timestamp_ms is None or self.max_timestamps is None:
            return None
        return max(self.prior_max_timestamp_ms, *self.max_timestamps)

    @property
    def cost_bytes(self) -> int:
        """The memory that the index takes, for those who keep many."""
        sections_bytes = sum(map(len, self.sections.values()))
        entry_bytes = ENTRY_BYTES if self.max_timestamps is None else ENTRY_BYTES + 8
        return _OBJECT_BYTES + len(self) * entry_bytes + sections_bytes

    def find(self, offset: int) -> int:
        """The index of the last entry that is not beyond `offset`; of the first, if all are."""
        return max(bisect_right(self.offsets, offset) - 1, 0)

    def find_time(self, timestamp_ms: int) -> int | None:
        """The index of the first entry from which a batch reaches `timestamp_ms`, if any does.

        Producers' times need not ascend, so every entry is looked at. Where times were not kept,
        the answer is the first entry: everything has to be read.
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
            _append_section(output, TIME_MAGIC, _swapped(times).tobytes())
        for magic, content in self.sections.items():
            _append_section(output, magic, content)
        output += _CHECKSUM.pack(CHECKSUM_MAGIC, _CHECKSUM_BYTES, crc32c(output))
        return bytes(output)


class Builder:
    """Makes an index while a segment is written, or read again, batch by batch."""

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
        """Take the next batch, as long as it is in the segment."""
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
            self._offsets, self._positions, self._max_timestamps, prior_max_timestamp_ms, sections
        )


def rebuild(
    batches: Iterable[BatchView],
    index_interval_bytes: int,
    *,
    prior_max_timestamp_ms: int | None = None,
) -> Index:
    """The index of a segment that has lost it, from all of its batches.

    Other sections are lost for good, as they are about more than the segment.
    """
    builder = Builder(index_interval_bytes)
    for batch in batches:
        builder.append(batch.base_offset, batch.count, len(batch), batch.max_timestamp_ms)
    return builder.finish(prior_max_timestamp_ms=prior_max_timestamp_ms)


def verify(key: str, found: Index, batches: Iterable[BatchView]) -> None:
    """Raise unless every entry of an index is the start of one of the batches of its segment."""
    base_offsets: dict[int, int] = {}
    position = FIRST_POSITION
    for batch in batches:
        base_offsets[position] = batch.base_offset
        position += len(batch)
    for offset, position in zip(found.offsets, found.positions, strict=True):
        if base_offsets.get(position) != offset:
            _damaged(key, f"no batch of its segment begins at {position} with offset {offset}")


# --- reading --------------------------------------------------------------------------------------


def decode(key: str, buffer: Buffer) -> Index:
    """A whole index, ours or upstream's; `key` is for the message if it is none."""
    view, is_proven = _verified(key, memoryview(buffer))
    if len(view) < HEADER_BYTES:
        _damaged(key, f"{len(view)} bytes are too few for its header")
    magic, version, count, _, _ = _HEADER.unpack_from(view)
    if magic not in MAGICS_READ:
        _damaged(key, f"it begins with {magic!r} instead of {MAGIC!r}")
    if version != VERSION:
        _damaged(key, f"version {version} is unknown")
    end = HEADER_BYTES + count * ENTRY_BYTES
    if count < 1 or end > len(view):
        _damaged(key, f"{len(view)} bytes cannot hold {count} entries")
    offsets, positions = _separate(view[HEADER_BYTES:end])
    if positions[0] != FIRST_POSITION:
        _damaged(key, f"its first entry is at {positions[0]} instead of {FIRST_POSITION}")
    if not is_proven:
        if offsets[0] < 0 or not _ascends(offsets) or not _ascends(positions):
            _damaged(key, "its entries do not ascend")
        if end < len(view):
            _damaged(key, "it has sections but no checksum")
    sections = _read_sections(key, view, end)
    times = sections.pop(TIME_MAGIC, None)
    if times is None:
        return Index(offsets, positions, sections=sections)
    prior, max_timestamps = _read_times(key, times, count)
    return Index(offsets, positions, max_timestamps, prior, sections)


def _verified(key: str, view: memoryview) -> tuple[memoryview, bool]:
    """All but the checksum, and whether there was one; it holds then."""
    position = len(view) - _CHECKSUM.size
    if position < HEADER_BYTES:
        return view, False
    magic, length, stored = _CHECKSUM.unpack_from(view, position)
    if magic != CHECKSUM_MAGIC or length != _CHECKSUM_BYTES:
        return view, False
    computed = crc32c(view[:position])
    if computed != stored:
        _damaged(key, f"its checksum is {computed:08x}, but it says {stored:08x}")
    return view[:position], True


def _read_sections(key: str, view: memoryview, position: int) -> dict[bytes, bytes]:
    sections: dict[bytes, bytes] = {}
    while position < len(view):
        start = position + _SECTION.size
        if start > len(view):
            _damaged(key, "it ends within the header of a section")
        magic, length = _SECTION.unpack_from(view, position)
        end = start + length
        if end > len(view):
            _damaged(key, f"it ends within the section {magic!r}")
        if magic in sections:
            _damaged(key, f"it has two sections {magic!r}")
        sections[magic] = bytes(view[start:end])
        position = end
    return sections


def _read_times(key: str, content: bytes, count: int) -> tuple[int | None, "array[int]"]:
    if len(content) != 8 * (count + 1):
        _damaged(key, f"its {len(content)} bytes of times are not for {count} entries")
    times = _swapped(array("q", content))
    prior = times.pop(0)
    if prior < UNKNOWN_PRIOR_TIMESTAMP:
        _damaged(key, f"{prior} cannot be the greatest timestamp of a log")
    return None if prior == UNKNOWN_PRIOR_TIMESTAMP else prior, times


def _damaged(key: str, reason: str) -> NoReturn:
    raise DamagedObjectError(key, reason)


# --- columns and rows -----------------------------------------------------------------------------
#
# An entry is three words of 32 bits, two for the offset and one for the position. Arrays move the
# words of all entries at once: a hundred times as fast as a loop over the entries, of which the
# index of a full segment has tens of thousands.


def _interleave(offsets: "array[int]", positions: "array[int]") -> bytes:
    words = array("i", bytes(len(offsets) * ENTRY_BYTES))
    halves = array("i", _swapped(offsets).tobytes())
    words[0::3] = halves[0::2]
    words[1::3] = halves[1::2]
    words[2::3] = _swapped(positions)
    return words.tobytes()


def _separate(entries: memoryview) -> tuple["array[int]", "array[int]"]:
    words = array("i", bytes(entries))
    halves = array("i", bytes(len(words) // 3 * 8))
    halves[0::2] = words[0::3]
    halves[1::2] = words[1::3]
    return _swapped(array("q", halves.tobytes())), _swapped(words[2::3])


def _swapped(values: "array[int]") -> "array[int]":
    """The values with their bytes in big-endian order, or back: a copy, unless they are already."""
    if not _IS_LITTLE_ENDIAN:
        return values
    copy = values[:]
    copy.byteswap()
    return copy


def _ascends(values: "array[int]") -> bool:
    return all(map(lt, values, islice(values, 1, None)))


def _append_section(output: bytearray, magic: bytes, content: bytes) -> None:
    output += _SECTION.pack(magic, len(content))
    output += content
