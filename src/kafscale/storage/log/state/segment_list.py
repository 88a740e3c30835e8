"""The segments of a partition: base offsets and sizes, in order.

Base offsets are part of the object keys, so a bucket listing contains all of this; a segment ends
where the next one begins. Flat arrays hold it, because a partition may have hundreds of
thousands of segments. For the same reason callers should not iterate over all of them in one turn
of the event loop: `find`, `some`, `count_older` and `offset_after_bytes` find what retention needs.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

_UNKNOWN_MS: Final = -(2**63)

_BLOCK: Final = 1024
"""How many sizes are added up at a time."""


class Segment(msgspec.Struct, frozen=True, gc=False):
    """One segment: the objects `.kfs` and `.index` with the same base offset."""

    base_offset: int
    next_offset: int
    """The offset after its last one, or the base offset of the next segment."""
    size_bytes: int


class SegmentList:
    """The segments of one partition, oldest first."""

    __slots__ = ("_bases", "_newest_ms", "_sizes", "end_offset", "total_bytes")

    def __init__(self) -> None:
        self._bases: array[int] = array("q")
        self._sizes: array[int] = array("q")
        self._newest_ms: array[int] = array("q")
        """The newest timestamp of each segment, or `_UNKNOWN_MS`."""
        self.end_offset = 0
        """The offset after the last segment."""
        self.total_bytes = 0

    def __len__(self) -> int:
        return len(self._bases)

    def __getitem__(self, number: int) -> Segment:
        if number < 0:
            number += len(self._bases)
        following = number + 1
        is_last = following == len(self._bases)
        return Segment(
            self._bases[number],
            self.end_offset if is_last else self._bases[following],
            self._sizes[number],
        )

    def __iter__(self) -> Iterator[Segment]:
        return (self[number] for number in range(len(self._bases)))

    def newest(self, count: int) -> Iterator[tuple[int, Segment]]:
        """The last segments, each with its index."""
        return ((number, self[number]) for number in range(max(len(self) - count, 0), len(self)))

    @property
    def start_offset(self) -> int | None:
        return self._bases[0] if self._bases else None

    def append(
        self, base_offset: int, next_offset: int, size_bytes: int, newest_ms: int = _UNKNOWN_MS
    ) -> None:
        """Add a segment after all others; a negative `newest_ms`: no record has a timestamp."""
        assert not self._bases or base_offset > self._bases[-1]
        self._bases.append(base_offset)
        self._sizes.append(size_bytes)
        # Unknown until retention reads when the segment was written.
        self._newest_ms.append(newest_ms if newest_ms >= 0 else _UNKNOWN_MS)
        self.end_offset = next_offset
        self.total_bytes += size_bytes

    def replace(self, others: Sequence[tuple[int, int]], end_offset: int) -> None:
        """Replace the segments below `end_offset` by others, given as base offset and size."""
        first = bisect_left(self._bases, others[0][0])
        last = bisect_left(self._bases, end_offset)
        self.total_bytes += sum(size for _, size in others) - sum(self._sizes[first:last])
        self._bases[first:last] = array("q", [base_offset for base_offset, _ in others])
        self._sizes[first:last] = array("q", [size for _, size in others])
        self._newest_ms[first:last] = array("q", [_UNKNOWN_MS] * len(others))

    def newest_ms(self, number: int) -> int | None:
        """The newest timestamp of a segment, if it is known."""
        newest_ms = self._newest_ms[number]
        return None if newest_ms == _UNKNOWN_MS else newest_ms

    def count_older(self, first: int, limit_ms: int, count_max: int) -> int:
        """Number of segments from `first` whose newest timestamps are known and older."""
        times = self._newest_ms[first : first + count_max]
        return next(
            (
                count
                for count, newest_ms in enumerate(times)
                if newest_ms >= limit_ms or newest_ms == _UNKNOWN_MS
            ),
            len(times),
        )

    def set_newest_ms(self, segment: Segment, newest_ms: int) -> None:
        """Remember the newest timestamp of a segment, unless it was replaced or deleted."""
        number = self.find(segment.base_offset)
        if number < len(self) and self[number] == segment:
            self._newest_ms[number] = newest_ms

    def resize(self, base_offset: int, size_bytes: int) -> bool:
        """Set the size of a segment that was replaced; return whether it has changed."""
        if not self.has(base_offset):
            return False
        number = self.find(base_offset)
        before, self._sizes[number] = self._sizes[number], size_bytes
        self.total_bytes += size_bytes - before
        return size_bytes != before

    def find(self, offset: int) -> int:
        """The index of the segment that holds the offset; 0 if the offset lies before all."""
        return max(bisect_right(self._bases, offset) - 1, 0)

    def has(self, base_offset: int) -> bool:
        """Whether a segment begins at the offset."""
        number = self.find(base_offset)
        return number < len(self._bases) and self._bases[number] == base_offset

    def some(self, first: int, count: int) -> list[Segment]:
        """The segments from index `first`, at most `count`."""
        return [self[number] for number in range(first, min(first + count, len(self._bases)))]

    def offset_after_bytes(self, size_bytes: int) -> int | None:
        """The end of the longest sequence of oldest segments that has at most `size_bytes`.

        None if the oldest segment alone is larger.
        """
        number = 0
        while number < len(self._sizes):
            block = self._sizes[number : number + _BLOCK]
            if (block_bytes := sum(block)) > size_bytes:
                break
            size_bytes -= block_bytes
            number += len(block)
        while number < len(self._sizes) and self._sizes[number] <= size_bytes:
            size_bytes -= self._sizes[number]
            number += 1
        return self[number - 1].next_offset if number else None

    def bytes_between(self, first: int, end: int) -> int:
        """The size of the segments from index `first` to before `end`."""
        return sum(self._sizes[first:end])

    def count_below(self, offset: int) -> int:
        """Number of segments that lie entirely below the offset."""
        number = self.find(offset)
        is_below = number < len(self._bases) and self[number].next_offset <= offset
        return number + 1 if is_below else number

    def drop_first(self, count: int) -> None:
        self.total_bytes -= sum(self._sizes[:count])
        del self._bases[:count]
        del self._sizes[:count]
        del self._newest_ms[:count]

    def drop_last(self) -> None:
        self.total_bytes -= self._sizes.pop()
        self._newest_ms.pop()
        self.end_offset = self._bases.pop()
