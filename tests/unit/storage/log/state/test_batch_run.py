"""`BatchRun`: batches in one buffer, their positions, and slices of whole batches."""

import pytest

from kafscale.storage.log.state.batch_run import BatchRun
from unit.storage.engines import run_of
from unit.storage.samples import batch


def test_run_positions_and_offsets_match_its_batches():
    run = run_of(10, 2, 3, 1)
    assert (run.base_offset, run.last_offset) == (10, 15)
    assert [result.base_offset for result in run.batches()] == [10, 12, 15]
    assert [result.base_offset for result in run.batches(13)] == [12, 15]
    assert BatchRun.parse(run.view).positions == run.positions


def test_run_owns_its_buffer():
    result = batch(0, 1)
    run = BatchRun.from_batches([result])
    before = bytes(run.view)
    result.stamp(99, 9)
    assert bytes(run.view) == before


@pytest.mark.parametrize(("offset", "index"), [(9, 0), (10, 0), (11, 0), (12, 1), (14, 1), (15, 2)])
def test_batch_index_of_an_offset(offset, index):
    assert run_of(10, 2, 3, 1).batch_index(offset) == index


def test_slice_returns_whole_batches_and_at_least_the_first():
    run = run_of(0, 1, 1, 1)
    size_bytes = len(run) // 3
    assert len(run.slice(0, len(run), first=True)) == len(run)
    assert len(run.slice(0, 2 * size_bytes, first=True)) == 2 * size_bytes
    assert len(run.slice(0, 2 * size_bytes - 1, first=True)) == size_bytes
    assert len(run.slice(1, 1, first=True)) == size_bytes
    assert len(run.slice(1, 1, first=False)) == 0


@pytest.mark.parametrize(("batches", "following"), [(1, 2), (2, 5), (3, 6)])
def test_next_offset_after_a_slice(batches, following):
    run = run_of(0, 2, 3, 1)
    assert run.next_offset_after(run.positions[batches], 1) == following
