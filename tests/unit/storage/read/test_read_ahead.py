"""Read-ahead is limited by segments and by bytes, whatever the size of segments."""

import pytest

from kafscale.storage.log.state.segment_list import SegmentList
from kafscale.storage.read.block import BLOCK_BYTES
from kafscale.storage.read.read_ahead import ReadAheadLimits, following_blocks

MIB = 1 << 20


def blocks(sizes, position, segments_max, bytes_max):
    """The number of the segment and the block, for a reader of the first segment."""
    segments = SegmentList()
    for number, size_bytes in enumerate(sizes):
        segments.append(number * 10, number * 10 + 10, size_bytes)
    limits = ReadAheadLimits(segments_max, bytes_max)
    found = following_blocks(segments, segments[0], position, limits)
    return [(segment.base_offset // 10, block) for segment, block in found]


@pytest.mark.parametrize(
    ("sizes", "position", "segments_max", "bytes_max", "expected"),
    [
        pytest.param([MIB] * 9, 100, 3, 12 * MIB, [(1, 0), (2, 0), (3, 0)], id="small"),
        pytest.param([MIB] * 9, 100, 8, 2 * MIB, [(1, 0), (2, 0)], id="bytes are the limit"),
        pytest.param(
            [100 * MIB] * 9, 0, 3, 12 * MIB, [(0, 1), (0, 2), (0, 3)], id="the same segment"
        ),
        pytest.param(
            [9 * MIB, 100 * MIB], 5 * MIB, 1, 9 * MIB, [(0, 2), (1, 0), (1, 1)], id="both"
        ),
        pytest.param([9 * MIB, MIB], 5 * MIB, 3, 99 * MIB, [(0, 2), (1, 0)], id="the end"),
        pytest.param([BLOCK_BYTES, MIB], 0, 1, 1, [(1, 0)], id="no empty block"),
        pytest.param([100 * MIB] * 9, 0, 0, 12 * MIB, [], id="disabled by segments"),
        pytest.param([100 * MIB] * 9, 0, 3, 0, [], id="disabled by bytes"),
    ],
)
def test_following_blocks(sizes, position, segments_max, bytes_max, expected):
    """R-13."""
    assert blocks(sizes, position, segments_max, bytes_max) == expected
