"""Tests of offset maps: lookup, clipping and size of extents."""

import pytest

from kafscale.spark.plan.offset_map import build
from kafscale.storage.formats import segment

OVERHEAD = segment.HEADER_BYTES + segment.FOOTER_BYTES
SEGMENTS = [("a", 0, 1000 + OVERHEAD), ("b", 100, 500 + OVERHEAD), ("c", 200, 100 + OVERHEAD)]


@pytest.fixture
def partition():
    result, has_gap = build(("orders", 0), SEGMENTS, 300, [])
    assert not has_gap
    return result


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 300, [("a", 0, 100, False), ("b", 100, 200, False), ("c", 200, 300, False)]),
        (50, 150, [("a", 50, 100, False), ("b", 100, 150, True)]),
        (100, 101, [("b", 100, 101, True)]),
        (299, 400, [("c", 299, 300, False)]),
        (300, 400, []),
    ],
)
def test_extents_between_clips_extents(partition, start, end, expected):
    extents = partition.extents_between(start, end)
    assert [
        (extent.key, extent.start_offset, extent.end_offset, extent.is_cut) for extent in extents
    ] == expected


@pytest.mark.parametrize(
    ("start", "end", "size_bytes"), [(0, 300, 1600), (50, 150, 750), (250, 300, 50), (300, 310, 0)]
)
def test_bytes_between_is_proportional_to_offsets(partition, start, end, size_bytes):
    assert partition.bytes_between(start, end) == size_bytes


def test_build_of_an_empty_partition():
    result, _ = build(("orders", 0), [], 0, [])
    assert (result.start_offset, result.end_offset, result.extents) == (0, 0, ())
