"""Consecutive batches in one piece of memory."""

import pytest

from kafscale.storage.log.state.batch_run import BatchRun
from unit.storage.engines import run_of
from unit.storage.samples import batch


def test_a_run_knows_its_batches():
    run = run_of(10, 2, 3, 1)
    assert (run.base_offset, run.last_offset) == (10, 15)
    assert [found.base_offset for found in run.batches()] == [10, 12, 15]
    assert [found.base_offset for found in run.batches(13)] == [12, 15]
    assert BatchRun.parse(run.view).positions == run.positions


def test_a_run_owns_its_bytes():
    found = batch(0, 1)
    run = BatchRun.from_batches([found])
    before = bytes(run.view)
    found.stamp(99, 9)
    assert bytes(run.view) == before


@pytest.mark.parametrize(("offset", "index"), [(9, 0), (10, 0), (11, 0), (12, 1), (14, 1), (15, 2)])
def test_an_offset_lies_in_a_batch(offset, index):
    assert run_of(10, 2, 3, 1).batch_index(offset) == index


def test_a_slice_holds_whole_batches_and_the_first_always_fits():
    run = run_of(0, 1, 1, 1)
    size_bytes = len(run) // 3
    assert len(run.slice(0, len(run), first=True)) == len(run)
    assert len(run.slice(0, 2 * size_bytes, first=True)) == 2 * size_bytes
    assert len(run.slice(0, 2 * size_bytes - 1, first=True)) == size_bytes
    assert len(run.slice(1, 1, first=True)) == size_bytes
    assert len(run.slice(1, 1, first=False)) == 0


@pytest.mark.parametrize(("batches", "following"), [(1, 2), (2, 5), (3, 6)])
def test_the_offset_after_a_slice(batches, following):
    run = run_of(0, 2, 3, 1)
    assert run.next_offset_after(run.positions[batches], 1) == following
