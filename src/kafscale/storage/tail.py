"""The tail of a partition: its newest durable records, in memory.

The laws: a tail holds durable runs only, in the order of their offsets, so whatever it gives out is
below the high watermark; runs above `rolled_offset` exist nowhere else but in the WAL and stay
until a segment holds them; those below it are kept as long as memory allows, because consumers that
keep up read exactly these.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise, takewhile
from typing import NamedTuple

from kafscale.records import BatchView
from kafscale.storage.run import Run


class TailMemory:
    """The memory that all tails of a broker take together."""

    __slots__ = ("unrolled_bytes", "used_bytes")

    def __init__(self) -> None:
        self.used_bytes = 0
        self.unrolled_bytes = 0
        """How many bytes of records wait for a segment."""


class Waiting(NamedTuple):
    """Records that no segment holds yet, as they were at one moment; runs never change."""

    runs: list[Run]
    from_offset: int

    def stretches(self, bytes_max: int) -> Iterator[tuple[memoryview, "array[int]"]]:
        """The oldest batches: as many as fit, but at least one.

        Each stretch is a run's memory and where in it each of the batches begins and the last one
        ends. They are contiguous: where damage has left a hole in the log, a new segment begins.
        """
        next_offset: int | None = None
        for run in self.runs:
            if next_offset not in (None, run.base_offset):
                return
            positions = run.positions[run.place(self.from_offset) :]
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
        """The same, one by one."""
        return [
            BatchView(view[start:end])
            for view, positions in self.stretches(bytes_max)
            for start, end in pairwise(positions)
        ]


class Tail:
    """The newest durable runs of one partition."""

    __slots__ = ("_bases", "_memory", "_runs", "rolled_offset", "unrolled_bytes")

    def __init__(self, memory: TailMemory, rolled_offset: int) -> None:
        self._memory = memory
        self._runs: list[Run] = []
        self._bases: list[int] = []
        self.rolled_offset = rolled_offset
        """Everything below is in segments."""
        self.unrolled_bytes = 0
        """How many bytes wait for a segment."""

    @property
    def start_offset(self) -> int | None:
        """The first offset that can be read here, if any can."""
        return self._bases[0] if self._bases else None

    @property
    def runs(self) -> list[Run]:
        return self._runs

    def append(self, run: Run) -> None:
        assert not self._runs or run.base_offset > self._runs[-1].last_offset
        self._runs.append(run)
        self._bases.append(run.base_offset)
        self._count_unrolled(self.unrolled_bytes + len(run))
        self._memory.used_bytes += run.cost_bytes

    def read(self, offset: int, bytes_max: int, *, first: bool) -> tuple[list[memoryview], int]:
        """Slices of whole batches from the one that holds the offset, and the offset after them."""
        slices: list[memoryview] = []
        number = max(bisect_right(self._bases, offset) - 1, 0)
        while number < len(self._runs):
            run = self._runs[number]
            number += 1
            if run.last_offset < offset:
                continue
            found = run.slice(offset, bytes_max, first=first)
            if not found:
                break
            slices.append(found)
            offset = run.next_offset_after(len(found), offset)
            bytes_max -= len(found)
            first = False
            if offset <= run.last_offset or bytes_max <= 0:
                break
        return slices, offset

    def bytes_from(self, offset: int, enough: int) -> int:
        """How many bytes can be read from the offset on; stops counting when it is enough."""
        total = 0
        for run in self._runs[max(bisect_right(self._bases, offset) - 1, 0) :]:
            if run.last_offset >= offset:
                total += len(run) - run.positions[run.place(offset)]
            if total >= enough:
                break
        return total

    def waiting(self) -> "Waiting":
        """What waits for a segment; looking at its batches can be left to another thread."""
        return Waiting(self._unrolled_runs(), self.rolled_offset)

    def unrolled(self, bytes_max: int) -> list[BatchView]:
        """The batches that wait for a segment: as many as fit, but at least one."""
        return self.waiting().batches(bytes_max)

    def mark_rolled(self, offset: int) -> None:
        """Note that everything below the offset is in segments now."""
        assert offset >= self.rolled_offset
        self.rolled_offset = offset
        self._count_unrolled(self._find_unrolled_bytes())

    def evict(self) -> int:
        """Let go of the oldest run if a segment holds it; return how many bytes that freed."""
        if not self._runs or self._runs[0].last_offset >= self.rolled_offset:
            return 0
        del self._bases[0]
        freed_bytes = self._runs.pop(0).cost_bytes
        self._memory.used_bytes -= freed_bytes
        return freed_bytes

    def evict_below(self, offset: int) -> None:
        """Let go of what retention has deleted or a job replaced, as far as segments hold it.

        What they do not hold yet is rolled like the rest, for its producers' sake: segments are
        what brokers remember them by.
        """
        while self._runs and self._runs[0].last_offset < offset and self.evict():
            pass

    def clear(self) -> None:
        self._memory.used_bytes -= sum(run.cost_bytes for run in self._runs)
        self._runs.clear()
        self._bases.clear()
        self._count_unrolled(0)

    def _unrolled_runs(self) -> list[Run]:
        newest_first = takewhile(
            lambda run: run.last_offset >= self.rolled_offset, reversed(self._runs)
        )
        return list(newest_first)[::-1]

    def _count_unrolled(self, unrolled_bytes: int) -> None:
        self._memory.unrolled_bytes += unrolled_bytes - self.unrolled_bytes
        self.unrolled_bytes = unrolled_bytes

    def _find_unrolled_bytes(self) -> int:
        # Rolls cut between batches, so that the batch which holds `rolled_offset` begins there.
        return sum(
            len(run) - run.positions[run.place(self.rolled_offset)] for run in self._unrolled_runs()
        )
