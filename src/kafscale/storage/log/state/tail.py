"""The tail of a partition: its newest durable records, in memory.

The laws: a tail holds durable runs only, in the order of their offsets, so whatever it gives out is
below the high watermark; runs above `rolled_offset` exist nowhere else but in the WAL and stay
until a segment holds them; those below it are kept as long as memory allows, because consumers that
keep up read exactly these. They go in the order in which they came, over all tails of a broker.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from sys import maxsize
from typing import NamedTuple

from kafscale.records import BatchView
from kafscale.storage.log.state.batch_run import Run


class TailMemory:
    """The memory that all tails of a broker take together."""

    __slots__ = ("rolled_bytes", "turn", "unrolled_bytes", "used_bytes")

    def __init__(self) -> None:
        self.turn = 0
        """How many runs have come so far."""
        self.used_bytes = 0
        self.rolled_bytes = 0
        """How much of it could be let go, because segments hold the same records."""
        self.unrolled_bytes = 0
        """How many bytes of records wait for a segment."""

    @property
    def pinned_bytes(self) -> int:
        """How much of it has to stay until segments are made."""
        return self.used_bytes - self.rolled_bytes


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

    __slots__ = (
        "_bases",
        "_memory",
        "_rolled_count",
        "_runs",
        "_turns",
        "rolled_offset",
        "unrolled_bytes",
    )

    def __init__(self, memory: TailMemory, rolled_offset: int) -> None:
        self._memory = memory
        self._runs: list[Run] = []
        self._bases: list[int] = []
        self._turns = array("q")
        """When each run came, counted over all tails."""
        self._rolled_count = 0
        """How many runs, the oldest, are in segments with all of their batches."""
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
        assert run.last_offset >= self.rolled_offset, "it waits for a segment"
        self._runs.append(run)
        self._bases.append(run.base_offset)
        self._turns.append(self._memory.turn)
        self._memory.turn += 1
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
        for run in self._runs[self._rolled_count :]:
            if run.last_offset >= offset:
                break
            self._rolled_count += 1
            self._memory.rolled_bytes += run.cost_bytes
        self._count_unrolled(self._find_unrolled_bytes())

    def evictable(self) -> Iterator[tuple[int, int]]:
        """The turn and the cost in bytes of each run that segments hold, from the oldest on."""
        for number in range(self._rolled_count):
            yield self._turns[number], self._runs[number].cost_bytes

    def evict(self, turn: int = maxsize) -> int:
        """Let go of runs that came up to this turn, as far as segments hold them.

        Returns how many bytes that freed.
        """
        return self._let_go(bisect_right(self._turns, turn, hi=self._rolled_count))

    def evict_below(self, offset: int) -> None:
        """Let go of what retention has deleted or a job replaced, as far as segments hold it.

        What they do not hold yet is rolled like the rest, for its producers' sake: segments are
        what brokers remember them by.
        """
        count = bisect_right(self._bases, offset, hi=self._rolled_count)
        if count and self._runs[count - 1].last_offset >= offset:
            count -= 1
        self._let_go(count)

    def clear(self) -> None:
        self._let_go(self._rolled_count)
        self._memory.used_bytes -= sum(run.cost_bytes for run in self._runs)
        self._runs.clear()
        self._bases.clear()
        del self._turns[:]
        self._count_unrolled(0)

    def _let_go(self, count: int) -> int:
        """Forget the oldest runs, all at once: one by one takes the square of the time."""
        freed_bytes = sum(run.cost_bytes for run in self._runs[:count])
        del self._runs[:count], self._bases[:count], self._turns[:count]
        self._rolled_count -= count
        self._memory.used_bytes -= freed_bytes
        self._memory.rolled_bytes -= freed_bytes
        return freed_bytes

    def _unrolled_runs(self) -> list[Run]:
        return self._runs[self._rolled_count :]

    def _count_unrolled(self, unrolled_bytes: int) -> None:
        self._memory.unrolled_bytes += unrolled_bytes - self.unrolled_bytes
        self.unrolled_bytes = unrolled_bytes

    def _find_unrolled_bytes(self) -> int:
        # Rolls cut between batches, so that the batch which holds `rolled_offset` begins there.
        return sum(
            len(run) - run.positions[run.place(self.rolled_offset)] for run in self._unrolled_runs()
        )
