"""`Tail`: reads, eviction, and memory accounting of the newest durable records."""

from kafscale.records import split
from kafscale.storage.log.state.tail import Tail, TailMemory
from unit.storage.engines import run_of


def tail_of(*runs) -> tuple[Tail, TailMemory]:
    memory = TailMemory()
    tail = Tail(memory, 0)
    for run in runs:
        tail.append(run)
    return tail, memory


def bases(slices) -> list[int]:
    return [batch.base_offset for batch in split(b"".join(slices))]


def test_read_spans_runs_and_stops_at_the_limit():
    tail, _ = tail_of(run_of(0, 1, 1), run_of(2, 1, 1))
    slices, following = tail.read(1, 1 << 20, first=True)
    assert (bases(slices), following) == ([1, 2, 3], 4)
    slices, following = tail.read(1, len(slices[0]) * 2, first=True)
    assert (bases(slices), following) == ([1, 2], 3)
    assert tail.read(1, 1, first=False) == ([], 1)
    assert bases(tail.read(1, 1, first=True)[0]) == [1]
    assert tail.read(4, 100, first=True) == ([], 4)


def test_read_continues_after_a_gap():
    tail, _ = tail_of(run_of(0, 1), run_of(5, 1))
    assert bases(tail.read(1, 1 << 20, first=True)[0]) == [5]


def test_unrolled_batches_are_contiguous_and_bounded():
    tail, _ = tail_of(run_of(0, 1, 1, 1), run_of(7, 1))
    size_bytes = len(tail.runs[0]) // 3
    assert [result.base_offset for result in tail.unrolled().batches(1 << 20)] == [0, 1, 2]
    assert [result.base_offset for result in tail.unrolled().batches(2 * size_bytes)] == [0, 1]
    assert [result.base_offset for result in tail.unrolled().batches(1)] == [0]
    tail.mark_rolled(2)
    assert tail.unrolled_bytes == 2 * size_bytes
    assert [result.base_offset for result in tail.unrolled().batches(1 << 20)] == [2]
    tail.mark_rolled(3)
    assert [result.base_offset for result in tail.unrolled().batches(1 << 20)] == [7]


def test_only_rolled_runs_are_evicted():
    tail, memory = tail_of(run_of(0, 1, 1), run_of(2, 1))
    assert tail.evict() == 0
    tail.mark_rolled(1)
    tail.evict_below(3)
    assert tail.start_offset == 0
    tail.mark_rolled(2)
    freed = tail.evict()
    assert freed == run_of(0, 1, 1).cost_bytes
    assert tail.start_offset == 2
    assert memory.used_bytes == run_of(2, 1).cost_bytes
    tail.mark_rolled(3)
    tail.evict_below(3)
    assert (tail.start_offset, memory.used_bytes) == (None, 0)


def test_eviction_order_is_arrival_order_across_tails():
    memory = TailMemory()
    one, other = Tail(memory, 0), Tail(memory, 0)
    for base_offset in range(3):
        one.append(run_of(base_offset, 1))
        other.append(run_of(base_offset, 1))
    assert list(one.evictable()) == []
    one.mark_rolled(3)
    other.mark_rolled(1)
    cost_bytes = run_of(0, 1).cost_bytes
    assert list(one.evictable()) == [(turn, cost_bytes) for turn in (0, 2, 4)]
    assert list(other.evictable()) == [(1, cost_bytes)]
    assert (memory.rolled_bytes, memory.pinned_bytes) == (4 * cost_bytes, 2 * cost_bytes)
    assert one.evict(3) == 2 * cost_bytes
    assert other.evict(3) == cost_bytes  # Its second run came by then, but is in no segment.
    assert (one.start_offset, other.start_offset) == (2, 1)
    assert (memory.rolled_bytes, memory.pinned_bytes) == (cost_bytes, 2 * cost_bytes)


def test_evict_below_keeps_a_run_until_its_last_record():
    tail, _ = tail_of(run_of(0, 1, 1), run_of(5, 1), run_of(6, 1))
    tail.mark_rolled(7)
    starts = []
    for offset in (1, 2, 5, 6, 100):
        tail.evict_below(offset)
        starts.append(tail.start_offset)
    assert starts == [0, 5, 5, 6, None]


def test_bytes_from_counts_from_the_batch_of_the_offset():
    tail, _ = tail_of(run_of(0, 1, 1), run_of(2, 1))
    size_bytes = len(run_of(0, 1))
    assert [tail.bytes_from(offset, 1 << 20) for offset in range(4)] == [
        3 * size_bytes,
        2 * size_bytes,
        size_bytes,
        0,
    ]


def test_clear_returns_memory():
    tail, memory = tail_of(run_of(0, 1, 1), run_of(2, 1))
    tail.mark_rolled(2)
    assert memory.used_bytes > memory.rolled_bytes > 0
    tail.clear()
    assert (memory.used_bytes, memory.rolled_bytes) == (0, 0)
    assert (tail.unrolled_bytes, tail.start_offset) == (0, None)
    tail.append(run_of(3, 1))
    tail.mark_rolled(4)
    assert tail.evict() == run_of(3, 1).cost_bytes
    assert (memory.used_bytes, memory.rolled_bytes) == (0, 0)
