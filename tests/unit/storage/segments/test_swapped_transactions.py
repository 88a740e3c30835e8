"""The section of transactions after a swap: what a new segment lists depends on what it holds."""

import pytest

from kafscale.storage.formats.index_section import PRODUCERS_SECTION
from kafscale.storage.formats.segment_output import SegmentOutput
from unit.storage.engines import append, memory_store, roll, simulate
from unit.storage.samples import CREATED_MS
from unit.storage.staged_segments import PREFIX, replace_all
from unit.storage.test_transactions import evict, lose_indexes, opened, section
from unit.storage.transactions import (
    ABORT,
    COMMIT,
    Producer,
    Written,
    all_committed,
    read_committed,
)


async def two_segments(store):
    """An aborted transaction in the first segment, and one that spans both."""
    engine, log = await opened(store)
    written = Written()
    first, second = Producer(1, written), Producer(2, written)
    await first.send(engine, b"a")
    await second.send(engine, b"b")
    await first.end(engine, ABORT)
    await append(engine, b"plain")
    await roll(engine)
    await second.end(engine, ABORT)
    await first.send(engine, b"c")
    await roll(engine)
    evict(log)
    return engine, log, written


@pytest.mark.parametrize(
    ("dropped", "listed"),
    [
        (set(), [(1, 0, 2), (2, 1, 4)]),
        ({0}, [(1, 0, 2), (2, 1, 4)]),
        ({0, 2}, [(2, 1, 4)]),
        ({0, 1, 2, 4}, []),
    ],
)
def test_transactions_are_listed_as_long_as_their_markers_are_there(dropped, listed):
    async def scenario():
        engine, log, written = await two_segments(memory_store())
        before = await section(engine, log)
        await replace_all(engine, log, dropped)
        said = await section(engine, log)
        assert list(said.aborted) == listed
        assert (said.open, said.marked) == (before.open, before.marked)
        assert [each[:3] for each in said.open] == [(1, 0, 5)]
        assert await all_committed(engine, log, 0) == {3: b"plain"}
        await Producer(1, written).end(engine, COMMIT)
        assert set(await all_committed(engine, log, 0)) == {3, 5}

    simulate(scenario)


def test_batch_of_an_open_transaction_is_not_read_with_the_offsets_before_it():
    """Compaction leaves segments with open transactions alone; a job might not."""

    async def scenario():
        engine, log, written = await two_segments(memory_store())
        await replace_all(engine, log, {0, 1, 2, 3, 4})
        assert await read_committed(engine, log, 0, 1 << 30) == ({}, 0)
        await Producer(1, written).end(engine, COMMIT)
        assert await all_committed(engine, log, 0) == {5: b"c"}

    simulate(scenario)


@pytest.mark.parametrize("lost", [{1}, {0, 1}])
def test_index_says_nothing_if_it_is_not_known_where_a_transaction_began(lost):
    """The first offset in the new index would be used by readers of earlier segments, too."""

    async def scenario():
        engine, log, _ = await two_segments(memory_store())
        await append(engine, b"plain")
        await roll(engine)
        evict(log)
        await lose_indexes(engine, log, *lost)
        base_offset, end_offset = log.segments[1].base_offset, log.segments.end_offset
        output = SegmentOutput(base_offset, end_offset, CREATED_MS)
        for segment in list(log.segments)[1:]:
            for batch in await engine.reader.batches(log, segment, 32):
                output.append("", batch)
        await engine._store.put(f"{PREFIX}segment-{base_offset:020d}.kfs", output.finish().parts)
        await engine.swap_segments(log, PREFIX)
        entries = await engine.reader.index(log, log.segments[1])
        assert (PRODUCERS_SECTION in entries.sections) == (0 not in lost)
        assert await all_committed(engine, log, 0) == {3: b"plain"}

    simulate(scenario)
