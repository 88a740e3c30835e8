"""How far a step of a stream goes, what it reads, and what it calls lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.spark.plan.offset_map import PartitionOffsets
from kafscale.spark.plan.task_planner import OffsetRange
from kafscale.spark.source import microbatch

A, B = ("orders", 0), ("orders", 1)


def log(**ends):
    """Partitions by their first and last offsets: `a=(0, 10)`."""
    places = {"a": A, "b": B}
    return {places[name]: PartitionOffsets(*places[name], *span) for name, span in ends.items()}


def read(start, end, partitions, **how):
    wanted, losses = microbatch.ranges(start, end, partitions, **how)
    return [(one.partition, one.start_offset, one.end_offset) for one in wanted], losses


def test_what_lies_between_is_read():
    partitions = log(a=(0, 30), b=(0, 5))
    assert read({A: 10, B: 5}, {A: 20, B: 5}, partitions) == ([(0, 10, 20)], [])
    assert isinstance(microbatch.ranges({A: 1}, {A: 2}, partitions)[0][0], OffsetRange)


def test_a_new_partition_is_read_from_its_first_record():
    assert read({A: 10}, {A: 10, B: 5}, log(a=(0, 10), b=(0, 5))) == ([(1, 0, 5)], [])


def test_a_new_partition_that_has_lost_records_already_says_so():
    wanted, losses = read({}, {B: 9}, log(b=(4, 9)))
    assert wanted == [(1, 4, 9)]
    assert losses == ["orders/1 has lost the offsets 0 to 3 to retention"]


def test_retention_that_passes_a_slow_reader_is_a_loss():
    wanted, losses = read({A: 10}, {A: 40}, log(a=(25, 50)))
    assert wanted == [(0, 25, 40)]
    assert losses == ["orders/0 has lost the offsets 10 to 24 to retention"]
    wanted, losses = read({A: 10}, {A: 20}, log(a=(25, 50)))
    assert wanted == []
    assert losses == ["orders/0 has lost the offsets 10 to 19 to retention"]


def test_retention_that_passes_what_was_read_is_none():
    assert read({A: 10}, {A: 10}, log(a=(25, 50))) == ([], [])


def test_a_topic_that_was_created_anew_is_read_from_its_first_record():
    wanted, losses = read({A: 100}, {A: 7}, log(a=(0, 7)))
    assert wanted == [(0, 0, 7)]
    assert losses == [
        "orders/0 was created anew: it was read up to offset 100 before, and goes up to 7 now"
    ]


def test_a_topic_that_shrinks_between_a_plan_and_its_repetition_is_a_loss():
    wanted, losses = read({A: 1}, {A: 9}, log(a=(0, 5)))
    assert wanted == [(0, 1, 5)]
    assert losses == ["orders/0 ends at 5 instead of 9"]


def test_what_is_deleted_is_a_loss():
    assert read({A: 5, B: 3}, {A: 6}, log(a=(0, 6))) == (
        [(0, 5, 6)],
        ["orders/1 is gone; it was read up to offset 3"],
    )
    assert read({A: 5}, {A: 6}, {}) == ([], ["orders/0 is gone, as is everything up to offset 6"])


def test_the_first_step_that_is_tried_again_may_start_beyond_its_end():
    assert read({A: 9}, {A: 7}, log(a=(0, 9)), is_first=True) == ([], [])


def test_shares_are_in_proportion_and_nobody_starves():
    partitions = log(a=(0, 1000), b=(0, 10))
    assert microbatch.limit({A: 0, B: 0}, {A: 1000, B: 10}, partitions, 101) == {A: 100, B: 1}
    assert microbatch.limit({A: 0, B: 0}, {A: 1000, B: 10}, partitions, 10) == {A: 9, B: 1}
    assert microbatch.limit({A: 0, B: 0}, {A: 1000, B: 10}, partitions, 5000) == {A: 1000, B: 10}


def test_a_share_begins_where_reading_does():
    assert microbatch.limit({A: 0}, {A: 50}, log(a=(40, 50)), 3) == {A: 43}  # Retention passed.
    assert microbatch.limit({}, {A: 50}, log(a=(40, 50)), 3) == {A: 43}  # It is new.
    assert microbatch.limit({A: 99}, {A: 50}, log(a=(0, 50)), 3) == {A: 3}  # It is new again.


span = st.tuples(st.integers(0, 50), st.integers(0, 50)).map(lambda pair: (pair[0], sum(pair)))


@given(span, span, st.integers(1, 60), st.integers(0, 60), st.integers(0, 60))
def test_a_limited_stream_reaches_the_end(a, b, offsets_max, start_a, start_b):
    """Step by step, nothing is read twice, nothing beyond the limit but for rounding, all comes."""
    partitions = log(a=a, b=b)
    end = {A: a[1], B: b[1]}
    at = {A: min(start_a, a[1]), B: min(start_b, b[1])}
    expected = {
        (place[1], offset)
        for place in end
        for offset in range(microbatch.begin(at, partitions[place]), end[place])
    }
    seen = []
    for _ in range(1000):
        until = microbatch.limit(at, end, partitions, offsets_max)
        if until == at:
            break
        wanted, _ = microbatch.ranges(at, until, partitions)
        step = [
            (one.partition, offset)
            for one in wanted
            for offset in range(one.start_offset, one.end_offset)
        ]
        assert len(step) <= offsets_max + 1
        seen += step
        at = until
    assert len(seen) == len(set(seen))
    assert set(seen) == expected


@pytest.mark.parametrize("offset", [0, 7, 10])
def test_what_is_left_is_counted(offset):
    assert microbatch.count({A: offset}, {A: 10}, log(a=(5, 10))) == 10 - max(offset, 5)
