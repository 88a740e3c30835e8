"""When compaction is worthwhile, and up to where it goes."""

import pytest

from kafscale.spark.jobs.compact.candidates import Candidate, cleanable_end, is_due
from kafscale.spark.jobs.compact.cleanup_policy import Policy
from kafscale.spark.plan.offset_map import Extent, PartitionOffsets

EXTENTS = tuple(Extent(base, base + 10, f"key {base}", 32, 100) for base in (10, 20, 30, 40))
FOUND = PartitionOffsets("t", 0, 10, 60, (*EXTENTS, Extent(50, 60, "wal", 0, 100, is_wal=True)))


def never():
    raise AssertionError("nobody needs to know")


@pytest.mark.parametrize(
    ("head_start", "end"), [(None, 50), (50, 50), (40, 40), (30, 30), (20, 20), (10, 0)]
)
def test_whole_segments_before_the_head_are_cleaned(head_start, end):
    assert cleanable_end(FOUND, head_start) == end


@pytest.mark.parametrize(
    ("clean_end", "end", "ratio"), [(0, 50, 1.0), (30, 50, 0.5), (40, 50, 0.25), (50, 50, 0)]
)
def test_the_dirty_share(clean_end, end, ratio):
    candidate = Candidate(FOUND, Policy(), clean_end, end)
    assert candidate.dirty_ratio == ratio
    assert is_due(candidate, never, 0) == (ratio > 0.5)


def test_what_has_waited_for_too_long_is_due():
    candidate = Candidate(FOUND, Policy(lag_ms_max=1000), 40, 50)
    assert not is_due(candidate, lambda: 500, 1500)
    assert is_due(candidate, lambda: 499, 1500)
    assert not is_due(candidate, lambda: None, 1500)
    clean = Candidate(FOUND, Policy(lag_ms_max=1000), 50, 50)
    assert not is_due(clean, never, 10**9)


def test_configs_are_kafka_s():
    assert Policy.of({}) == Policy()
    assert Policy.of({"cleanup.policy": "delete"}) == Policy()
    assert Policy.of(
        {
            "cleanup.policy": "delete,compact",
            "delete.retention.ms": "1",
            "min.cleanable.dirty.ratio": "0.1",
            "min.compaction.lag.ms": "2",
            "max.compaction.lag.ms": "3",
            "segment.bytes": "4",
        }
    ) == Policy(
        is_compacted=True,
        delete_retention_ms=1,
        dirty_ratio_min=0.1,
        lag_ms_min=2,
        lag_ms_max=3,
        segment_bytes=4,
    )
