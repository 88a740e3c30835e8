"""A run: consecutive batches of one partition in one buffer, with the position of each.

A WAL object holds one run for each of its partitions; a partition's tail is a list of runs.

Invariant: a run owns its buffer and shares it with no other partition, so evicting a run frees
exactly its memory.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct

from kafscale.errors import CorruptBatchError
from kafscale.records import BatchView
from kafscale.records.batch import (
    HEADER,
    HEADER_BYTES,
    LENGTH_OVERHEAD_BYTES,
    BatchHeader,
    check_magic,
)
from kafscale.records.checksum import Buffer

OVERHEAD_BYTES = 512
"""Approximate cost of a run besides its batches: its objects and first array elements."""

_ENTRY_BYTES = 16
_BASE_OFFSET = Struct(">q")


class BatchRun:
    """Consecutive batches of one partition."""

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
        """Base offset of each batch."""
        self.positions = positions
        """Start of each batch, and the end of the last one."""
        self.base_offset = offsets[0]
        self.last_offset = last_offset
        self.max_timestamp_ms = max_timestamp_ms

    @classmethod
    def from_buffers(
        cls, buffers: Sequence[Buffer], last_offset: int, max_timestamp_ms: int
    ) -> "BatchRun":
        """Join separate batches; the only copy of a record on the produce path."""
        offsets = array("q")
        positions = array("q", [0])
        end = 0
        for buffer in buffers:
            offsets.extend(_BASE_OFFSET.unpack_from(buffer))
            end += len(buffer)
            positions.append(end)
        return cls(memoryview(b"".join(buffers)), offsets, positions, last_offset, max_timestamp_ms)

    @classmethod
    def parse(cls, data: Buffer) -> "BatchRun":
        """Copy batches that are already contiguous, as in an object that was read."""
        copied = bytes(data)
        offsets = array("q")
        positions = array("q", [0])
        last_offset = max_timestamp_ms = -1
        position = 0
        while position < len(copied):
            if position + HEADER_BYTES > len(copied):
                raise CorruptBatchError("the last batch is shorter than its header")
            base_offset, length, _, magic, _, _, delta, _, max_ms, *_ = HEADER.unpack_from(
                copied, position
            )
            check_magic(magic)
            position += LENGTH_OVERHEAD_BYTES + length
            if length < HEADER_BYTES - LENGTH_OVERHEAD_BYTES or position > len(copied):
                raise CorruptBatchError(f"a batch has length field {length}")
            offsets.append(base_offset)
            positions.append(position)
            last_offset = base_offset + delta
            max_timestamp_ms = max(max_timestamp_ms, max_ms)
        return cls(memoryview(copied), offsets, positions, last_offset, max_timestamp_ms)

    @classmethod
    def from_batches(cls, batches: Sequence[BatchView]) -> "BatchRun":
        return cls.from_buffers(
            [batch.buffer for batch in batches],
            batches[-1].last_offset,
            max(batch.max_timestamp_ms for batch in batches),
        )

    def __len__(self) -> int:
        return len(self.view)

    def __repr__(self) -> str:
        return f"<BatchRun offsets {self.base_offset}..{self.last_offset} bytes {len(self)}>"

    @property
    def cost_bytes(self) -> int:
        """Approximate memory used by the run."""
        return len(self.view) + _ENTRY_BYTES * len(self.offsets) + OVERHEAD_BYTES

    def batch_index(self, offset: int) -> int:
        """The index of the batch that holds the offset, or would."""
        return max(bisect_right(self.offsets, offset) - 1, 0)

    def first_index(self, offset: int) -> int:
        """The index of the first batch that ends at or after the offset."""
        return len(self.offsets) if self.last_offset < offset else self.batch_index(offset)

    def headers(self, start: int, stop: int) -> Iterator[BatchHeader]:
        """The headers of the batches with these indexes."""
        for position in self.positions[start : min(stop, len(self.offsets))]:
            yield BatchHeader._make(HEADER.unpack_from(self.view, position))

    def start_position(self, offset: int) -> int:
        """Where the batch begins that holds the offset."""
        return self.positions[self.batch_index(offset)]

    def end_position(self, end_offset: int | None) -> int:
        """Where the batches end that are wholly below an offset; None: all batches."""
        if end_offset is None or end_offset > self.last_offset:
            return len(self.view)
        return self.start_position(end_offset)

    def slice(
        self, offset: int, bytes_max: int, *, first: bool, end_offset: int | None = None
    ) -> memoryview:
        """Whole batches from the one that holds the offset, at most `bytes_max` bytes.

        With `first`, one batch is returned even if it is larger, so that the reader can progress.
        With an end offset, batches that reach it are left out.
        """
        start = self.start_position(offset)
        end = self.end_position(end_offset)
        limit = start + bytes_max
        if limit >= end:
            return self.view[start : max(start, end)]
        stop = self.positions[bisect_right(self.positions, limit) - 1]
        if stop <= start and first:
            stop = self.positions[self.batch_index(offset) + 1]
        return self.view[start:stop]

    def next_offset_after(self, length: int, start_offset: int) -> int:
        """The offset after a slice of this length that began at the batch of `start_offset`."""
        stop = self.positions[self.batch_index(start_offset)] + length
        following = bisect_right(self.positions, stop) - 1
        if following >= len(self.offsets):
            return self.last_offset + 1
        return self.offsets[following]

    def batches(self, from_offset: int = 0) -> Iterable[BatchView]:
        """The batches from the one that holds the offset."""
        for index in range(self.batch_index(from_offset), len(self.offsets)):
            yield self.batch(index)

    def batch(self, index: int) -> BatchView:
        return BatchView(self.view[self.positions[index] : self.positions[index + 1]])
