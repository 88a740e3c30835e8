"""Survivors are found their segments, and come back as they were kept aside."""

import numpy as np
import pytest

from kafscale.errors import DamagedObjectError, ObjectNotFoundError
from kafscale.spark.jobs.compact import surviving_offsets
from kafscale.spark.jobs.compact.latest_by_key import ROW, incomplete
from kafscale.spark.jobs.compact.surviving_offsets import SurvivorsWork, Target
from unit.spark.jobs.keyed import MemoryLocation

TARGETS = [
    Target("a", 0, 0, 10),
    Target("a", 0, 10, 20),
    Target("a", 0, 30, 40),
    Target("b", 0, 5, 9),
]


@pytest.fixture
def work():
    return SurvivorsWork(MemoryLocation(), "run", TARGETS, [0, 3, 3, 4])


@pytest.fixture
def store(work):
    with work.location.open() as opened:
        yield opened


def row(place, offset, *, oldest=None, is_expired=False, key=None):
    oldest = offset if oldest is None else oldest
    return np.array([(place, key or offset, place, oldest, offset, is_expired)], ROW)


def placed(work, *rows):
    found = surviving_offsets.placed(work, [(0, each.tobytes()) for each in rows])
    return {segment: np.frombuffer(data, np.int64).tolist() for segment, data in found}


def test_each_is_found_its_segment(work):
    rows = [row(0, offset) for offset in (0, 9, 10, 19, 20, 29, 30, 39, 40)]
    rows += [row(1, 7), row(2, 4), row(2, 5), row(2, 8), row(2, 9)]
    assert placed(work, *rows) == {0: [0, 9], 1: [10, 19], 2: [30, 39], 3: [5, 8]}


def test_a_mark_that_has_expired_goes_if_it_is_alone(work):
    alone = row(0, 3, is_expired=True)
    with_others = row(0, 5, oldest=1, is_expired=True)
    assert placed(work, alone, with_others, row(0, 7)) == {0: [5, 7]}


def test_only_the_newest_counts_whichever_task_has_found_it(work):
    assert placed(work, row(0, 3, key=1), row(0, 8, key=1), row(0, 5, key=1)) == {0: [8]}


def test_what_is_incomplete_is_told(work):
    assert placed(work, incomplete(2), row(0, 1)) == {-3: [], 0: [1]}


def test_offsets_come_back_as_they_were(work, store):
    shared = [(1, np.array([12, 17]).tobytes()), (0, np.array([4]).tobytes())]
    shared += [(1, np.array([11]).tobytes()), (-2, b"")]
    assert dict(surviving_offsets.kept_aside(work, shared)) == {0: 1, 1: 3, -2: 0}
    key = work.key(TARGETS[1])
    assert surviving_offsets.load(store, key, TARGETS[1], 3).tolist() == [11, 12, 17]
    assert key.startswith("default/_staging/compact-run-survivors/a/0/segment-")


def test_none_is_not_the_same_as_lost(work, store):
    key = work.key(TARGETS[0])
    assert surviving_offsets.load(store, key, TARGETS[0], 0).size == 0
    with pytest.raises(ObjectNotFoundError):
        surviving_offsets.load(store, key, TARGETS[0], 2)
    store.put(key, [surviving_offsets.encode(TARGETS[0], np.array([4]))])
    with pytest.raises(DamagedObjectError, match="1 offsets instead of 2"):
        surviving_offsets.load(store, key, TARGETS[0], 2)
    data = bytearray(store.get(key))
    data[-1] ^= 1
    store.put(key, [data], create=False)
    with pytest.raises(DamagedObjectError, match="CRC"):
        surviving_offsets.load(store, key, TARGETS[0], 1)
