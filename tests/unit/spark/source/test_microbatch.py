"""Tests of micro-batches: limits, ranges and losses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import InvalidRequestError
from kafscale.spark.plan.offset_map import PartitionOffsets
from kafscale.spark.plan.task_planner import OffsetRange
from kafscale.spark.source import microbatch

A, B = ("orders", 0), ("orders", 1)


def partitions_of(**ends):
    """Partitions by start and end offset: `a=(0, 10)`."""
    keys = {"a": A, "b": B}
    return {keys[name]: PartitionOffsets(*keys[name], *span) for name, span in ends.items()}


def read(start, end, partitions, **options):
    ranges, losses = microbatch.ranges(start, end, partitions, **options)
    return [(range_.partition, range_.start_offset, range_.end_offset) for range_ in ranges], losses


def test_ranges_between_two_checkpoints():
    partitions = partitions_of(a=(0, 30), b=(0, 5))
    assert read({A: 10, B: 5}, {A: 20, B: 5}, partitions) == ([(0, 10, 20)], [])
    assert isinstance(microbatch.ranges({A: 1}, {A: 2}, partitions)[0][0], OffsetRange)


def test_a_new_partition_is_read_from_its_start():
    assert read({A: 10}, {A: 10, B: 5}, partitions_of(a=(0, 10), b=(0, 5))) == ([(1, 0, 5)], [])


def test_a_new_partition_with_deleted_records_is_a_loss():
    ranges, losses = read({}, {B: 9}, partitions_of(b=(4, 9)))
    assert ranges == [(1, 4, 9)]
    assert losses == ["offsets 0 to 3 of orders/1 were deleted by retention"]


def test_retention_of_unread_offsets_is_a_loss():
    ranges, losses = read({A: 10}, {A: 40}, partitions_of(a=(25, 50)))
    assert ranges == [(0, 25, 40)]
    assert losses == ["offsets 10 to 24 of orders/0 were deleted by retention"]
    ranges, losses = read({A: 10}, {A: 20}, partitions_of(a=(25, 50)))
    assert ranges == []
    assert losses == ["offsets 10 to 19 of orders/0 were deleted by retention"]


def test_retention_of_read_offsets_is_no_loss():
    assert read({A: 10}, {A: 10}, partitions_of(a=(25, 50))) == ([], [])


def test_a_recreated_topic_is_read_from_its_start():
    ranges, losses = read({A: 100}, {A: 7}, partitions_of(a=(0, 7)))
    assert ranges == [(0, 0, 7)]
    assert losses == ["orders/0 was recreated: it was read up to offset 100, and now ends at 7"]


def test_a_checkpoint_behind_an_open_transaction_waits_for_it():
    """It was written by an earlier run that read uncommitted records."""
    partitions = {A: PartitionOffsets(*A, 0, 10, withheld_count=20)}
    for start, end in [(5, 10), (10, 10), (25, 25), (30, 30), (31, 10)]:
        assert microbatch.end_offsets(partitions, {A: start}) == {A: end}
    assert microbatch.limit({A: 25}, {A: 25}, partitions, 7) == {A: 25}
    assert microbatch.count({A: 25}, {A: 25}, partitions) == 0
    assert read({A: 25}, {A: 25}, partitions) == ([], [])
    with pytest.raises(InvalidRequestError, match="offsets 10 to 24 of orders/0 are behind"):
        read({A: 5}, {A: 25}, partitions)


def test_a_partition_that_ends_before_the_checkpoint_is_a_loss():
    ranges, losses = read({A: 1}, {A: 9}, partitions_of(a=(0, 5)))
    assert ranges == [(0, 1, 5)]
    assert losses == ["orders/0 ends at 5 instead of 9"]


def test_deleted_partitions_are_losses():
    assert read({A: 5, B: 3}, {A: 6}, partitions_of(a=(0, 6))) == (
        [(0, 5, 6)],
        ["orders/1 no longer exists; it was read up to 3"],
    )
    assert read({A: 5}, {A: 6}, {}) == ([], ["orders/0 no longer exists; offsets below 6 are lost"])


def test_the_retried_first_batch_may_start_after_its_end():
    assert read({A: 9}, {A: 7}, partitions_of(a=(0, 9)), is_first=True) == ([], [])


def test_limit_is_proportional_and_every_partition_advances():
    partitions = partitions_of(a=(0, 1000), b=(0, 10))
    assert microbatch.limit({A: 0, B: 0}, {A: 1000, B: 10}, partitions, 101) == {A: 100, B: 1}
    assert microbatch.limit({A: 0, B: 0}, {A: 1000, B: 10}, partitions, 10) == {A: 9, B: 1}
    assert microbatch.limit({A: 0, B: 0}, {A: 1000, B: 10}, partitions, 5000) == {A: 1000, B: 10}


def test_limit_counts_from_the_first_offset_to_read():
    assert microbatch.limit({A: 0}, {A: 50}, partitions_of(a=(40, 50)), 3) == {
        A: 43
    }  # After retention.
    assert microbatch.limit({}, {A: 50}, partitions_of(a=(40, 50)), 3) == {A: 43}  # It is new.
    assert microbatch.limit({A: 99}, {A: 50}, partitions_of(a=(0, 50)), 3) == {
        A: 3
    }  # It was recreated.


span = st.tuples(st.integers(0, 50), st.integers(0, 50)).map(lambda pair: (pair[0], sum(pair)))


@given(span, span, st.integers(1, 60), st.integers(0, 60), st.integers(0, 60))
def test_a_limited_stream_reads_every_offset_once(a, b, offsets_max, start_a, start_b):
    """Each micro-batch respects the limit, except for rounding."""
    partitions = partitions_of(a=a, b=b)
    end = {A: a[1], B: b[1]}
    at = {A: min(start_a, a[1]), B: min(start_b, b[1])}
    expected = {
        (key[1], offset)
        for key in end
        for offset in range(microbatch.first_offset(at, partitions[key]), end[key])
    }
    seen = []
    for _ in range(1000):
        until = microbatch.limit(at, end, partitions, offsets_max)
        if until == at:
            break
        ranges, _ = microbatch.ranges(at, until, partitions)
        step = [
            (range_.partition, offset)
            for range_ in ranges
            for offset in range(range_.start_offset, range_.end_offset)
        ]
        assert len(step) <= offsets_max + 1
        seen += step
        at = until
    assert len(seen) == len(set(seen))
    assert set(seen) == expected


@pytest.mark.parametrize("offset", [0, 7, 10])
def test_count_of_unread_offsets(offset):
    assert microbatch.count({A: offset}, {A: 10}, partitions_of(a=(5, 10))) == 10 - max(offset, 5)
