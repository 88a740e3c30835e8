"""The tail of a partition: its newest durable records, in memory.

Invariants:

* A tail holds only durable runs, in offset order, so everything it returns is below the high
  watermark.
* Runs above `rolled_offset` exist only here and in the WAL; they stay until a segment holds them.
* Runs below it are a cache for consumers that keep up. They are evicted in order of arrival, across
  all tails of a broker.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from sys import maxsize
from typing import NamedTuple

from kafscale.records import BatchView
from kafscale.storage.log.state.batch_run import BatchRun


class TailMemory:
    """Memory used by all tails of a broker."""

    __slots__ = ("arrival_sequence", "rolled_bytes", "unrolled_bytes", "used_bytes")

    def __init__(self) -> None:
        self.arrival_sequence = 0
        """Number of runs appended so far."""
        self.used_bytes = 0
        self.rolled_bytes = 0
        """Bytes that can be evicted, because segments hold the same records."""
        self.unrolled_bytes = 0
        """Bytes of records that are not in a segment yet."""

    @property
    def pinned_bytes(self) -> int:
        """Bytes that cannot be evicted before segments are rolled."""
        return self.used_bytes - self.rolled_bytes


class Unrolled(NamedTuple):
    """A snapshot of the records that are not in a segment yet; runs are immutable."""

    runs: list[BatchRun]
    from_offset: int

    def slices(self, bytes_max: int) -> Iterator[tuple[memoryview, "array[int]"]]:
        """The oldest batches: as many as fit into `bytes_max`, but at least one.

        Each slice is the memory of a run, with the position of each batch and the end of the last
        one. Slices are contiguous in offsets: at a gap caused by damage, a new segment begins.
        """
        next_offset: int | None = None
        for run in self.runs:
            if next_offset not in (None, run.base_offset):
                return
            positions = run.positions[run.batch_index(self.from_offset) :]
            size_bytes = positions[-1] - positions[0]
            if size_bytes > bytes_max:
                count_min = 1 if next_offset is None else 0
                count = bisect_right(positions, positions[0] + bytes_max) - 1
                yield run.view, positions[: max(count, count_min) + 1]
                return
            yield run.view, positions
            bytes_max -= size_bytes
            next_offset = run.last_offset + 1

    def batches(self, bytes_max: int) -> list[BatchView]:
        """The same batches, one by one."""
        return [
            BatchView(view[start:end])
            for view, positions in self.slices(bytes_max)
            for start, end in pairwise(positions)
        ]


class Tail:
    """The newest durable runs of one partition."""

    __slots__ = (
        "_arrivals",
        "_bases",
        "_memory",
        "_rolled_count",
        "rolled_offset",
        "runs",
        "unrolled_bytes",
    )

    def __init__(self, memory: TailMemory, rolled_offset: int) -> None:
        self._memory = memory
        self.runs: list[BatchRun] = []
        self._bases: list[int] = []
        self._arrivals = array("q")
        """The arrival number of each run, counted over all tails."""
        self._rolled_count = 0
        """Number of runs, from the oldest, whose batches are all in segments."""
        self.rolled_offset = rolled_offset
        """All records below this offset are in segments."""
        self.unrolled_bytes = 0
        """Bytes of records that are not in a segment yet."""

    @property
    def start_offset(self) -> int | None:
        """The first offset in the tail, or None if it is empty."""
        return self._bases[0] if self._bases else None

    def append(self, run: BatchRun) -> None:
        assert not self.runs or run.base_offset > self.runs[-1].last_offset
        assert run.last_offset >= self.rolled_offset, "the run is already in a segment"
        self.runs.append(run)
        self._bases.append(run.base_offset)
        self._arrivals.append(self._memory.arrival_sequence)
        self._memory.arrival_sequence += 1
        self._set_unrolled_bytes(self.unrolled_bytes + len(run))
        self._memory.used_bytes += run.cost_bytes

    def read(
        self, offset: int, bytes_max: int, *, first: bool, end_offset: int | None = None
    ) -> tuple[list[memoryview], int]:
        """Slices of whole batches from the one that holds the offset, and the offset after them.

        With an end offset, batches that reach it are left out.
        """
        slices: list[memoryview] = []
        number = max(bisect_right(self._bases, offset) - 1, 0)
        while number < len(self.runs):
            run = self.runs[number]
            number += 1
            if run.last_offset < offset:
                continue
            batches = run.slice(offset, bytes_max, first=first, end_offset=end_offset)
            if not batches:
                break
            slices.append(batches)
            offset = run.next_offset_after(len(batches), offset)
            bytes_max -= len(batches)
            first = False
            if offset <= run.last_offset or bytes_max <= 0:
                break
        return slices, offset

    def bytes_from(self, offset: int, enough: int, end_offset: int | None = None) -> int:
        """Bytes readable from the offset; stops counting at `enough`."""
        total = 0
        for run in self.runs[max(bisect_right(self._bases, offset) - 1, 0) :]:
            if run.last_offset >= offset:
                total += max(run.end_position(end_offset) - run.start_position(offset), 0)
            if total >= enough or (end_offset is not None and run.last_offset >= end_offset):
                break
        return total

    def unrolled(self) -> "Unrolled":
        """A snapshot of what is not in a segment; safe to read from another thread."""
        return Unrolled(self.runs[self._rolled_count :], self.rolled_offset)

    def mark_rolled(self, offset: int) -> None:
        """Record that segments hold everything below the offset."""
        assert offset >= self.rolled_offset
        self.rolled_offset = offset
        for run in self.runs[self._rolled_count :]:
            if run.last_offset >= offset:
                break
            self._rolled_count += 1
            self._memory.rolled_bytes += run.cost_bytes
        self._set_unrolled_bytes(self._compute_unrolled_bytes())

    def evictable(self) -> Iterator[tuple[int, int]]:
        """The arrival number and memory cost of each rolled run, oldest first."""
        for number in range(self._rolled_count):
            yield self._arrivals[number], self.runs[number].cost_bytes

    def evict(self, arrival: int = maxsize) -> int:
        """Evict rolled runs up to this arrival number; return the number of bytes freed."""
        return self._evict_oldest(bisect_right(self._arrivals, arrival, hi=self._rolled_count))

    def evict_below(self, offset: int) -> None:
        """Evict rolled runs below the offset, which retention deleted or a job replaced.

        Runs that are not rolled stay and are rolled as usual: producer state is recovered from
        segments.
        """
        count = bisect_right(self._bases, offset, hi=self._rolled_count)
        if count and self.runs[count - 1].last_offset >= offset:
            count -= 1
        self._evict_oldest(count)

    def clear(self) -> None:
        self._evict_oldest(self._rolled_count)
        self._memory.used_bytes -= sum(run.cost_bytes for run in self.runs)
        self.runs.clear()
        self._bases.clear()
        del self._arrivals[:]
        self._set_unrolled_bytes(0)

    def _evict_oldest(self, count: int) -> int:
        """Drop the oldest runs in one step; one at a time would take quadratic time."""
        freed_bytes = sum(run.cost_bytes for run in self.runs[:count])
        del self.runs[:count], self._bases[:count], self._arrivals[:count]
        self._rolled_count -= count
        self._memory.used_bytes -= freed_bytes
        self._memory.rolled_bytes -= freed_bytes
        return freed_bytes

    def _set_unrolled_bytes(self, unrolled_bytes: int) -> None:
        self._memory.unrolled_bytes += unrolled_bytes - self.unrolled_bytes
        self.unrolled_bytes = unrolled_bytes

    def _compute_unrolled_bytes(self) -> int:
        # Rolls cut between batches, so a batch begins at `rolled_offset`.
        return sum(
            len(run) - run.positions[run.batch_index(self.rolled_offset)]
            for run in self.runs[self._rolled_count :]
        )
