"""Tests of task planning: complete, without overlaps, in tasks of the requested size."""

from hypothesis import given
from hypothesis import strategies as st

from kafscale.spark.plan.offset_map import OffsetMap, build
from kafscale.spark.plan.task_planner import PACK_BYTES, OffsetRange, plan

MIB = 1024 * 1024


def offset_map_of(*partitions):
    """Build a map from the segment sizes of each partition; a segment has 100 offsets."""
    built = {}
    for index, sizes in enumerate(partitions):
        segments = [(f"{index}-{base}", base * 100, size) for base, size in enumerate(sizes)]
        built["orders", index], _ = build(("orders", index), segments, len(sizes) * 100, [])
    return OffsetMap(built)


def full_ranges(offset_map):
    return [
        OffsetRange(*topic_partition, partition.start_offset, partition.end_offset)
        for topic_partition, partition in offset_map.partitions.items()
    ]


def covered_offsets(tasks):
    return [
        (part.partition, offset)
        for task in tasks
        for part in task.slices
        for offset in range(part.start_offset, part.end_offset)
    ]


SIZES = st.lists(st.lists(st.integers(48, 1000), min_size=1, max_size=6), min_size=1, max_size=4)


@given(SIZES, st.integers(1, 3000), st.integers(0, 20), st.integers(0, 250), st.data())
def test_plan_covers_every_offset_once(sizes, task_bytes, min_tasks, max_records, data):
    offset_map = offset_map_of(*sizes)
    ranges = [
        OffsetRange(
            one.topic,
            one.partition,
            start := data.draw(st.integers(0, one.end_offset)),
            data.draw(st.integers(start, one.end_offset)),
        )
        for one in full_ranges(offset_map)
    ]
    tasks = plan(
        offset_map, ranges, task_bytes=task_bytes, min_tasks=min_tasks, max_records=max_records
    )
    expected = [
        (one.partition, offset)
        for one in ranges
        for offset in range(one.start_offset, one.end_offset)
    ]
    assert covered_offsets(tasks) == expected
    for task in tasks:
        assert not max_records or task.count <= max_records
        for part in task.slices:
            held = offset_map.partitions["orders", part.partition].extents_between(
                part.start_offset, part.end_offset
            )
            assert list(part.extents) == held


def test_plan_splits_large_segments_and_packs_small_ones():
    offset_map = offset_map_of([100 * MIB], *([1000] * 3 for _ in range(50)))
    tasks = plan(offset_map, full_ranges(offset_map), task_bytes=30 * MIB)
    assert len(tasks) == 4
    assert all(task.size_bytes <= 30 * MIB for task in tasks)
    assert len(tasks[-1].slices) == 51


def test_plan_gives_large_ranges_their_own_tasks():
    offset_map = offset_map_of([PACK_BYTES], [PACK_BYTES])
    assert len(plan(offset_map, full_ranges(offset_map))) == 2


def test_plan_respects_the_minimum_number_of_tasks():
    offset_map = offset_map_of([10_000])
    assert len(plan(offset_map, full_ranges(offset_map), min_tasks=8)) >= 8


def test_plan_of_an_empty_range_has_no_tasks():
    offset_map = offset_map_of([1000])
    assert plan(offset_map, [OffsetRange("orders", 0, 50, 50)]) == []


def test_plan_of_a_hundred_thousand_segments():
    offset_map = offset_map_of([4 * MIB] * 100_000)
    tasks = plan(offset_map, full_ranges(offset_map))
    assert len(tasks) == 100_000 // 32
