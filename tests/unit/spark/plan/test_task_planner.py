"""Plans hold what was asked for: all of it, once, in pieces of the size that was wanted."""

from hypothesis import given
from hypothesis import strategies as st

from kafscale.spark.plan.offset_map import OffsetMap, build
from kafscale.spark.plan.task_planner import TOGETHER_BYTES, OffsetRange, plan

MIB = 1024 * 1024


def log_map(*partitions):
    """Each partition by the bytes of its segments, of a hundred offsets each."""
    drawn = {}
    for number, sizes in enumerate(partitions):
        segments = [(f"{number}-{base}", base * 100, size) for base, size in enumerate(sizes)]
        drawn["orders", number], _ = build(("orders", number), segments, len(sizes) * 100, [])
    return OffsetMap(drawn)


def whole(found):
    return [
        OffsetRange(*place, log.start_offset, log.end_offset)
        for place, log in found.partitions.items()
    ]


def covered(tasks):
    return [
        (part.partition, offset)
        for task in tasks
        for part in task.slices
        for offset in range(part.start_offset, part.end_offset)
    ]


SIZES = st.lists(st.lists(st.integers(48, 1000), min_size=1, max_size=6), min_size=1, max_size=4)


@given(SIZES, st.integers(1, 3000), st.integers(0, 20), st.integers(0, 250), st.data())
def test_every_offset_is_in_one_task(sizes, task_bytes, min_tasks, max_records, data):
    found = log_map(*sizes)
    ranges = [
        OffsetRange(
            one.topic,
            one.partition,
            start := data.draw(st.integers(0, one.end_offset)),
            data.draw(st.integers(start, one.end_offset)),
        )
        for one in whole(found)
    ]
    tasks = plan(found, ranges, task_bytes=task_bytes, min_tasks=min_tasks, max_records=max_records)
    wanted = [
        (one.partition, offset)
        for one in ranges
        for offset in range(one.start_offset, one.end_offset)
    ]
    assert covered(tasks) == wanted
    for task in tasks:
        assert not max_records or task.count <= max_records
        for part in task.slices:
            held = found.partitions["orders", part.partition].extents_between(
                part.start_offset, part.end_offset
            )
            assert list(part.extents) == held


def test_large_segments_are_split_and_small_ones_share_a_task():
    found = log_map([100 * MIB], *([1000] * 3 for _ in range(50)))
    tasks = plan(found, whole(found), task_bytes=30 * MIB)
    assert len(tasks) == 4
    assert all(task.size_bytes <= 30 * MIB for task in tasks)
    assert len(tasks[-1].slices) == 51


def test_ranges_that_are_large_enough_have_tasks_of_their_own():
    found = log_map([TOGETHER_BYTES], [TOGETHER_BYTES])
    assert len(plan(found, whole(found))) == 2


def test_more_tasks_are_made_if_somebody_wants_more():
    found = log_map([10_000])
    assert len(plan(found, whole(found), min_tasks=8)) >= 8


def test_nothing_makes_no_task():
    found = log_map([1000])
    assert plan(found, [OffsetRange("orders", 0, 50, 50)]) == []


def test_a_hundred_thousand_segments_are_planned_in_no_time():
    found = log_map([4 * MIB] * 100_000)
    tasks = plan(found, whole(found))
    assert len(tasks) == 100_000 // 32
