"""Which offsets a round covers."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafscale.errors import OffsetOutOfRangeError
from kafscale.spark.jobs.lake.plan import plan_ranges, resume_offset
from kafscale.spark.plan.offset_map import Extent, PartitionOffsets


def partition(number: int, *extents: tuple[int, int, int]) -> PartitionOffsets:
    """A partition with extents of start, end and size."""
    built = tuple(Extent(start, end, f"{start}", 0, size) for start, end, size in extents)
    start, end = (built[0].start_offset, built[-1].end_offset) if built else (0, 0)
    return PartitionOffsets("orders", number, start, end, built)


def planned(*partitions: PartitionOffsets, starts=None, bytes_max=10**9, records_max=0):
    starts = starts or {one.partition: one.start_offset for one in partitions}
    ranges = plan_ranges(partitions, starts, bytes_max=bytes_max, records_max=records_max)
    return {one.partition: (one.start_offset, one.end_offset) for one in ranges}


def test_all_offsets_are_covered_if_they_fit():
    assert planned(partition(0, (0, 10, 100)), partition(1), partition(2, (5, 9, 10))) == {
        0: (0, 10),
        2: (5, 9),
    }


def test_unused_share_of_a_partition_is_left_to_the_others():
    ranges = planned(
        partition(0, (0, 100, 1000)),
        partition(1, (0, 10, 100)),
        partition(2, (0, 100, 1000)),
        bytes_max=900,
    )
    assert ranges == {0: (0, 40), 1: (0, 10), 2: (0, 40)}


def test_number_of_records_is_limited():
    ranges = planned(partition(0, (0, 100, 10)), partition(1, (0, 4, 1)), records_max=20)
    assert ranges == {0: (0, 16), 1: (0, 4)}


def test_round_always_advances():
    huge = partition(0, (0, 2, 10**9))
    assert planned(huge, bytes_max=1) == {0: (0, 1)}
    assert planned(huge, starts={0: 1}, bytes_max=1) == {0: (1, 2)}


@example([[(1, 2)], [(1, 0), (1, 2)]], 1, 0)
@given(
    st.lists(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 5000)), max_size=5), max_size=5),
    st.integers(1, 10_000),
    st.integers(0, 100),
)
def test_rounds_cover_every_offset_once(shapes, bytes_max, records_max):
    partitions = []
    for number, extents in enumerate(shapes):
        start, built = 0, []
        for count, size in extents:
            built.append((start, start + count, size))
            start += count
        partitions.append(partition(number, *built))
    starts = {one.partition: one.start_offset for one in partitions}
    for _ in range(2000):
        ranges = plan_ranges(partitions, starts, bytes_max=bytes_max, records_max=records_max)
        if not ranges:
            break
        for one in ranges:
            assert one.start_offset == starts[one.partition] < one.end_offset
            starts[one.partition] = one.end_offset
        if records_max:
            assert sum(one.count for one in ranges) <= max(records_max, len(ranges))
    assert starts == {one.partition: one.end_offset for one in partitions}


def test_resume_offset_of_a_partition():
    log = partition(0, (10, 20, 100))
    assert resume_offset(log, None, fail_on_data_loss=True) == 10
    assert resume_offset(log, 15, fail_on_data_loss=True) == 15
    assert resume_offset(log, 20, fail_on_data_loss=True) == 20
    assert resume_offset(log, 5, fail_on_data_loss=False) == 10
    for offset in (5, 21):
        with pytest.raises(OffsetOutOfRangeError, match=str(offset)):
            resume_offset(log, offset, fail_on_data_loss=True)
