"""The segments of a partition: base offsets and sizes, in order.

Base offsets are part of the object keys, so a bucket listing contains all of this; a segment ends
where the next one begins. Two flat arrays hold it, because a partition may have hundreds of
thousands of segments.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

import msgspec


class Segment(msgspec.Struct, frozen=True, gc=False):
    """One segment: the objects `.kfs` and `.index` with the same base offset."""

    base_offset: int
    next_offset: int
    """The offset after its last one, or the base offset of the next segment."""
    size_bytes: int


class SegmentList:
    """The segments of one partition, oldest first."""

    __slots__ = ("_bases", "_sizes", "end_offset", "total_bytes")

    def __init__(self) -> None:
        self._bases: array[int] = array("q")
        self._sizes: array[int] = array("q")
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

    def append(self, base_offset: int, next_offset: int, size_bytes: int) -> None:
        assert not self._bases or base_offset > self._bases[-1]
        self._bases.append(base_offset)
        self._sizes.append(size_bytes)
        self.end_offset = next_offset
        self.total_bytes += size_bytes

    def replace(self, others: Sequence[tuple[int, int]], end_offset: int) -> None:
        """Replace the segments below `end_offset` by others, given as base offset and size."""
        first = bisect_left(self._bases, others[0][0])
        last = bisect_left(self._bases, end_offset)
        self.total_bytes += sum(size for _, size in others) - sum(self._sizes[first:last])
        self._bases[first:last] = array("q", [base_offset for base_offset, _ in others])
        self._sizes[first:last] = array("q", [size for _, size in others])

    def find(self, offset: int) -> int:
        """The index of the segment that holds the offset; 0 if the offset lies before all."""
        return max(bisect_right(self._bases, offset) - 1, 0)

    def count_below(self, offset: int) -> int:
        """Number of segments that lie entirely below the offset."""
        number = self.find(offset)
        is_below = number < len(self._bases) and self[number].next_offset <= offset
        return number + 1 if is_below else number

    def drop_first(self, count: int) -> None:
        self.total_bytes -= sum(self._sizes[:count])
        del self._bases[:count]
        del self._sizes[:count]

    def drop_last(self) -> None:
        self.total_bytes -= self._sizes.pop()
        self.end_offset = self._bases.pop()
