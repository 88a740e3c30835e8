"""Surviving offsets are assigned to segments, stored and loaded again."""

import numpy as np
import pytest

from kafscale.errors import DamagedObjectError, ObjectNotFoundError
from kafscale.spark.jobs.compact import surviving_offsets
from kafscale.spark.jobs.compact.key_scan import ROW, incomplete_row
from kafscale.spark.jobs.compact.surviving_offsets import SurvivorStore, TargetSegment
from unit.spark.jobs.keyed_log import MemoryLocation

TARGETS = [
    TargetSegment("a", 0, 0, 10),
    TargetSegment("a", 0, 10, 20),
    TargetSegment("a", 0, 30, 40),
    TargetSegment("b", 0, 5, 9),
]


@pytest.fixture
def survivors():
    return SurvivorStore(MemoryLocation(), "run", TARGETS, [0, 3, 3, 4])


@pytest.fixture
def store(survivors):
    with survivors.location.open() as opened:
        yield opened


def row(partition, offset, *, oldest=None, is_expired=False, key=None):
    oldest = offset if oldest is None else oldest
    return np.array([(partition, key or offset, partition, oldest, offset, is_expired)], ROW)


def by_segment(survivors, *rows):
    shuffled = surviving_offsets.survivors_by_segment(
        survivors, [(0, each.tobytes()) for each in rows]
    )
    return {segment: np.frombuffer(data, np.int64).tolist() for segment, data in shuffled}


def test_offsets_are_assigned_to_their_segments(survivors):
    rows = [row(0, offset) for offset in (0, 9, 10, 19, 20, 29, 30, 39, 40)]
    rows += [row(1, 7), row(2, 4), row(2, 5), row(2, 8), row(2, 9)]
    assert by_segment(survivors, *rows) == {0: [0, 9], 1: [10, 19], 2: [30, 39], 3: [5, 8]}


def test_expired_tombstone_is_dropped_if_it_is_the_only_record(survivors):
    alone = row(0, 3, is_expired=True)
    with_others = row(0, 5, oldest=1, is_expired=True)
    assert by_segment(survivors, alone, with_others, row(0, 7)) == {0: [5, 7]}


def test_only_the_latest_offset_of_a_key_survives(survivors):
    assert by_segment(survivors, row(0, 3, key=1), row(0, 8, key=1), row(0, 5, key=1)) == {0: [8]}


def test_incomplete_partition_has_a_negative_number(survivors):
    assert by_segment(survivors, incomplete_row(2), row(0, 1)) == {-3: [], 0: [1]}


def test_stored_offsets_are_loaded(survivors, store):
    shared = [(1, np.array([12, 17]).tobytes()), (0, np.array([4]).tobytes())]
    shared += [(1, np.array([11]).tobytes()), (-2, b"")]
    assert dict(surviving_offsets.store_survivors(survivors, shared)) == {0: 1, 1: 3, -2: 0}
    key = survivors.key(TARGETS[1])
    assert surviving_offsets.load(store, key, TARGETS[1], 3).tolist() == [11, 12, 17]
    assert key.startswith("default/_staging/compact-run-survivors/a/0/segment-")


def test_missing_or_damaged_offsets_are_detected(survivors, store):
    key = survivors.key(TARGETS[0])
    assert surviving_offsets.load(store, key, TARGETS[0], 0).size == 0
    with pytest.raises(ObjectNotFoundError):
        surviving_offsets.load(store, key, TARGETS[0], 2)
    store.put(key, [surviving_offsets.encode(TARGETS[0], np.array([4]))])
    with pytest.raises(DamagedObjectError, match="1 offsets, expected 2"):
        surviving_offsets.load(store, key, TARGETS[0], 2)
    data = bytearray(store.get(key))
    data[-1] ^= 1
    store.put(key, [data], create=False)
    with pytest.raises(DamagedObjectError, match="CRC"):
        surviving_offsets.load(store, key, TARGETS[0], 1)
