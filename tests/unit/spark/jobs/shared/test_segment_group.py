"""Neighbouring segments are grouped up to a target size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.records.batch_rewrite import SPAN_MAX
from kafscale.spark.jobs.merge.job import plan
from kafscale.spark.jobs.shared.segment_group import group_segments, segments_of
from kafscale.spark.plan.offset_map import Extent, OffsetMap, PartitionOffsets
from kafscale.storage.formats import segment
from kafscale.storage.topic_catalog import CatalogTopic


def partition(*sizes, span=10):
    """A partition with segments of these sizes and one WAL extent."""
    extents = [
        Extent(
            number * span,
            (number + 1) * span,
            f"key {number}",
            32,
            size - (segment.HEADER_BYTES + segment.FOOTER_BYTES),
        )
        for number, size in enumerate(sizes)
    ]
    end = len(sizes) * span
    extents.append(Extent(end, end + 1, "wal", 0, 100, is_wal=True))
    return PartitionOffsets("orders", 0, 0, end + 1, tuple(extents))


def merge_sizes(*sizes, target_bytes=1000, configs=None, **options):
    offset_map = OffsetMap(
        {("orders", 0): partition(*sizes, **options)},
        {"orders": CatalogTopic("orders", "69" * 16, 1, configs or {})},
    )
    return [
        [each.segment_bytes for each in group.sources] for group in plan(offset_map, target_bytes)
    ]


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ((100, 200, 300), [[100, 200, 300]]),
        ((100, 900, 100, 100), [[100, 900], [100, 100]]),
        ((100, 2000, 100, 100), [[100, 100]]),
        ((100, 1000, 100), []),
        ((600, 600, 600), []),
        ((500,), []),
        ((), []),
    ],
)
def test_small_neighbours_are_merged(sizes, groups):
    assert merge_sizes(*sizes) == groups


@given(st.lists(st.integers(100, 1500), max_size=20))
def test_second_run_finds_nothing_to_merge(sizes):
    joined, index = [], 0
    for group in merge_sizes(*sizes):
        while sizes[index : index + len(group)] != group:
            joined.append(sizes[index])
            index += 1
        joined.append(sum(group))
        index += len(group)
    joined += sizes[index:]
    assert sum(joined) == sum(sizes)
    assert merge_sizes(*joined) == []


def test_default_target_is_the_segment_bytes_of_the_topic():
    assert merge_sizes(600, 600, target_bytes=0) == [[600, 600]]
    assert merge_sizes(600, 600, target_bytes=0, configs={"segment.bytes": "1000"}) == []


def test_group_spans_at_most_the_offsets_of_a_batch():
    assert merge_sizes(100, 100, 100, span=SPAN_MAX // 2) == [[100, 100]]
    assert merge_sizes(100, 100, span=SPAN_MAX + 1) == []


def test_segment_with_too_many_offsets_separates_its_neighbours():
    whole = partition(100, 100, 100)
    first, wide, last = segments_of(whole)
    wide = Extent(wide.start_offset, wide.start_offset + SPAN_MAX + 1, wide.key, 32, 100)
    last = Extent(wide.end_offset, wide.end_offset + 10, last.key, 32, 100)
    groups = list(group_segments(whole, [first, wide, last], 1000))
    assert [group.sources for group in groups] == [(first,), (last,)]
