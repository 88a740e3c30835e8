"""A run: consecutive batches of one partition in one piece of memory, with a place for each.

A WAL object holds one run for each partition that it has records of; a partition's tail is a list
of runs. The law: a run owns its bytes and pins nobody else's, so that letting go of one partition's
records frees exactly their memory.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from struct import Struct

from kafscale.records import BatchView, split
from kafscale.records.checksum import Buffer

OVERHEAD_BYTES = 512
"""What a run costs beside its batches, about: its objects and its first array elements."""

_PLACE_BYTES = 16
_BASE_OFFSET = Struct(">q")


class Run:
    """Batches of one partition, one after the other."""

    __slots__ = ("base_offset", "last_offset", "max_timestamp_ms", "offsets", "positions", "view")

    def __init__(
        self,
        view: memoryview,
        offsets: "array[int]",
        positions: "array[int]",
        last_offset: int,
        max_timestamp_ms: int,
    ) -> None:
        self.view = view
        self.offsets = offsets
        """The base offset of each batch."""
        self.positions = positions
        """Where each batch begins, and where the last one ends."""
        self.base_offset = offsets[0]
        self.last_offset = last_offset
        self.max_timestamp_ms = max_timestamp_ms

    @classmethod
    def joined(cls, buffers: Sequence[Buffer], last_offset: int, max_timestamp_ms: int) -> "Run":
        """A run of batches that lie apart; the one copy that a record sees on its way in."""
        offsets = array("q")
        positions = array("q", [0])
        end = 0
        for buffer in buffers:
            offsets.extend(_BASE_OFFSET.unpack_from(buffer))
            end += len(buffer)
            positions.append(end)
        return cls(memoryview(b"".join(buffers)), offsets, positions, last_offset, max_timestamp_ms)

    @classmethod
    def parsed(cls, data: Buffer) -> "Run":
        """A run of batches that lie together already, as in an object that was read."""
        return cls.of(split(data))

    @classmethod
    def of(cls, batches: Sequence[BatchView]) -> "Run":
        return cls.joined(
            [batch.buffer for batch in batches],
            batches[-1].last_offset,
            max(batch.max_timestamp_ms for batch in batches),
        )

    def __len__(self) -> int:
        return len(self.view)

    def __repr__(self) -> str:
        return f"<Run offsets {self.base_offset}..{self.last_offset} bytes {len(self)}>"

    @property
    def cost_bytes(self) -> int:
        """The memory that the run takes, about."""
        return len(self.view) + _PLACE_BYTES * len(self.offsets) + OVERHEAD_BYTES

    def place(self, offset: int) -> int:
        """The number of the batch that holds the offset, or would."""
        return max(bisect_right(self.offsets, offset) - 1, 0)

    def slice(self, offset: int, bytes_max: int, *, first: bool) -> memoryview:
        """Whole batches from the one that holds the offset, at most so many bytes.

        The first batch of an answer always fits, however large it is: a reader must get on.
        """
        start = self.positions[self.place(offset)]
        limit = start + bytes_max
        if limit >= len(self.view):
            return self.view[start:]
        stop = self.positions[bisect_right(self.positions, limit) - 1]
        if stop <= start and first:
            stop = self.positions[self.place(offset) + 1]
        return self.view[start:stop]

    def next_offset_after(self, length: int, start_offset: int) -> int:
        """The offset after a slice of this length that began at the batch of `start_offset`."""
        stop = self.positions[self.place(start_offset)] + length
        following = bisect_right(self.positions, stop) - 1
        if following >= len(self.offsets):
            return self.last_offset + 1
        return self.offsets[following]

    def batches(self, from_offset: int = 0) -> Iterable[BatchView]:
        """The batches from the one that holds the offset on."""
        for number in range(self.place(from_offset), len(self.offsets)):
            yield BatchView(self.view[self.positions[number] : self.positions[number + 1]])
