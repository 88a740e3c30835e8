"""Maps: extents are found, cut and weighed."""

import pytest

from kafscale.spark.plan.offset_map import build
from kafscale.storage.formats import segment

OVERHEAD = segment.HEADER_BYTES + segment.FOOTER_BYTES
SEGMENTS = [("a", 0, 1000 + OVERHEAD), ("b", 100, 500 + OVERHEAD), ("c", 200, 100 + OVERHEAD)]


@pytest.fixture
def log():
    found, has_gap = build(("orders", 0), SEGMENTS, 300, [])
    assert not has_gap
    return found


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (0, 300, [("a", 0, 100, False), ("b", 100, 200, False), ("c", 200, 300, False)]),
        (50, 150, [("a", 50, 100, False), ("b", 100, 150, True)]),
        (100, 101, [("b", 100, 101, True)]),
        (299, 400, [("c", 299, 300, False)]),
        (300, 400, []),
    ],
)
def test_a_range_is_found(log, start, end, found):
    between = log.extents_between(start, end)
    assert [(one.key, one.start_offset, one.end_offset, one.is_cut) for one in between] == found


@pytest.mark.parametrize(
    ("start", "end", "size_bytes"), [(0, 300, 1600), (50, 150, 750), (250, 300, 50), (300, 310, 0)]
)
def test_bytes_are_shared_out_by_offsets(log, start, end, size_bytes):
    assert log.bytes_between(start, end) == size_bytes


def test_an_empty_log_has_no_extents():
    found, _ = build(("orders", 0), [], 0, [])
    assert (found.start_offset, found.end_offset, found.extents) == (0, 0, ())
