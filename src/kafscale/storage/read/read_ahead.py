"""Read-ahead: fetches what a sequential reader of segments will probably need next.

Both limits hold: the rest of the segment that is read and at most `segments_max` segments after it,
and at most `bytes_max` of all that. So small segments are fetched as whole objects, several at a
time, and a reader of large ones does not fill the cache. Errors are ignored: a reader that needs a
block fetches it again.
"""

from typing import NamedTuple

from kafscale.storage.log.state.segment_list import Segment, SegmentList
from kafscale.storage.read.block import BLOCK_BYTES


class ReadAheadLimits(NamedTuple):
    """How much is fetched ahead of a reader; nothing if one is 0."""

    segments_max: int
    bytes_max: int


BlockOfSegment = tuple[Segment, int]
"""A segment and the number of one of its blocks."""


def following_blocks(
    segments: SegmentList, segment: Segment, position: int, limits: ReadAheadLimits
) -> list[BlockOfSegment]:
    """The blocks to fetch for a reader that has come to a position."""
    blocks: list[BlockOfSegment] = []
    number = segments.find(segment.base_offset)
    last = min(number + limits.segments_max, len(segments) - 1)
    block = position // BLOCK_BYTES
    left_bytes = limits.bytes_max if limits.segments_max else 0
    while left_bytes > 0:
        block += 1
        if block * BLOCK_BYTES >= segment.size_bytes:
            number, block = number + 1, 0
            if number > last:
                break
            segment = segments[number]
        blocks.append((segment, block))
        left_bytes -= min(BLOCK_BYTES, segment.size_bytes - block * BLOCK_BYTES)
    return blocks
