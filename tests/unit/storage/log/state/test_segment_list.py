"""`SegmentList`: lookup by offset, append, replace and removal."""

import pytest

from kafscale.storage.log.state.segment_list import SegmentList


def segments_of(*bases: int, end_offset: int) -> SegmentList:
    segments = SegmentList()
    for base_offset in bases:
        segments.append(base_offset, base_offset, 10)
    segments.end_offset = end_offset
    return segments


def test_segment_ends_where_the_next_begins():
    segments = segments_of(0, 5, 9, end_offset=12)
    assert [(result.base_offset, result.next_offset) for result in segments] == [
        (0, 5),
        (5, 9),
        (9, 12),
    ]
    assert segments[-1] == segments[2]
    assert (segments.start_offset, segments.total_bytes, len(segments)) == (0, 30, 3)


@pytest.mark.parametrize(("offset", "number"), [(0, 0), (4, 0), (5, 1), (8, 1), (9, 2), (99, 2)])
def test_find_returns_the_segment_of_an_offset(offset, number):
    assert segments_of(0, 5, 9, end_offset=12).find(offset) == number


@pytest.mark.parametrize(
    ("offset", "count"), [(0, 0), (1, 0), (4, 0), (5, 1), (8, 1), (9, 2), (11, 2), (12, 3), (99, 3)]
)
def test_count_below_counts_segments_below_an_offset(offset, count):
    assert segments_of(0, 5, 9, end_offset=12).count_below(offset) == count


@pytest.mark.parametrize("offset", range(-1, 14))
def test_has_a_segment_that_begins_at_an_offset(offset):
    assert segments_of(0, 5, 9, end_offset=12).has(offset) == (offset in {0, 5, 9})
    assert not SegmentList().has(offset)


def test_some_segments():
    segments = segments_of(0, 5, 9, end_offset=12)
    assert segments.some(0, 2) == [segments[0], segments[1]]
    assert segments.some(1, 9) == [segments[1], segments[2]]


def test_count_older_stops_at_unknown_and_newer_times():
    segments = segments_of(0, 5, 9, 12, end_offset=15)
    assert segments.count_older(0, 100, 9) == 0
    for number, newest_ms in enumerate((10, 20, 120)):
        segments.set_newest_ms(segments[number], newest_ms)
    assert segments.count_older(0, 100, 9) == 2
    assert segments.count_older(1, 100, 9) == 1
    assert segments.count_older(0, 100, 1) == 1
    assert segments.count_older(0, 200, 9) == 3
    segments.replace([(5, 7)], 9)
    assert segments.count_older(0, 200, 9) == 1, "the new segment is not known"


@pytest.mark.parametrize("count", [3, 5_000])
def test_offset_after_bytes_counts_whole_segments(count):
    segments = segments_of(*range(count), end_offset=count)
    assert segments.offset_after_bytes(9) is None
    for expected in {1, 2, count // 2, count}:
        assert segments.offset_after_bytes(10 * expected) == expected
        assert segments.offset_after_bytes(10 * expected + 9) == expected
    assert segments.offset_after_bytes(10**9) == count
    assert SegmentList().offset_after_bytes(10**9) is None


def test_empty_list():
    segments = SegmentList()
    assert (segments.start_offset, segments.count_below(5), segments.find(5)) == (None, 0, 0)


def test_segments_are_dropped_from_both_ends():
    segments = segments_of(0, 5, 9, end_offset=12)
    segments.drop_first(1)
    assert (segments.start_offset, segments.end_offset, segments.total_bytes) == (5, 12, 20)
    segments.drop_last()
    assert (segments.end_offset, segments.total_bytes) == (9, 10)


def test_replace_swaps_a_range_of_segments():
    segments = SegmentList()
    for base_offset in (0, 10, 20, 30):
        segments.append(base_offset, base_offset + 10, 100)
    segments.replace([(10, 50), (15, 60)], 30)
    assert [(result.base_offset, result.next_offset, result.size_bytes) for result in segments] == [
        (0, 10, 100),
        (10, 15, 50),
        (15, 30, 60),
        (30, 40, 100),
    ]
    assert segments.total_bytes == 310
    segments.replace([(30, 1)], 40)
    assert (segments[-1].size_bytes, segments.end_offset, segments.total_bytes) == (1, 40, 211)
