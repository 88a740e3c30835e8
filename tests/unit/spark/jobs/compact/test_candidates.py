"""Which partitions are due for compaction, and up to which offset."""

import pytest

from kafscale.spark.jobs.compact.candidates import Candidate, CleanupPolicy, cleanable_end, is_due
from kafscale.spark.plan.offset_map import Extent, PartitionOffsets

EXTENTS = tuple(Extent(base, base + 10, f"key {base}", 32, 100) for base in (10, 20, 30, 40))
PARTITION = PartitionOffsets("t", 0, 10, 60, (*EXTENTS, Extent(50, 60, "wal", 0, 100, is_wal=True)))


def never():
    raise AssertionError("the time is not needed")


@pytest.mark.parametrize(
    ("head_start", "end"), [(None, 50), (50, 50), (40, 40), (30, 30), (20, 20), (10, 0)]
)
def test_cleanable_end_is_the_last_segment_end_before_the_head(head_start, end):
    assert cleanable_end(PARTITION, head_start) == end


@pytest.mark.parametrize(
    ("clean_end", "end", "ratio"), [(0, 50, 1.0), (30, 50, 0.5), (40, 50, 0.25), (50, 50, 0)]
)
def test_partition_is_due_above_the_dirty_ratio(clean_end, end, ratio):
    candidate = Candidate(PARTITION, CleanupPolicy(), clean_end, end)
    assert candidate.dirty_ratio == ratio
    assert is_due(candidate, never, 0) == (ratio > 0.5)


def test_partition_is_due_after_the_maximum_lag():
    candidate = Candidate(PARTITION, CleanupPolicy(lag_ms_max=1000), 40, 50)
    assert not is_due(candidate, lambda: 500, 1500)
    assert is_due(candidate, lambda: 499, 1500)
    assert not is_due(candidate, lambda: None, 1500)
    clean = Candidate(PARTITION, CleanupPolicy(lag_ms_max=1000), 50, 50)
    assert not is_due(clean, never, 10**9)


def test_policy_is_read_from_topic_configs():
    assert CleanupPolicy.from_configs({}) == CleanupPolicy()
    assert CleanupPolicy.from_configs({"cleanup.policy": "delete"}) == CleanupPolicy()
    assert CleanupPolicy.from_configs(
        {
            "cleanup.policy": "delete,compact",
            "delete.retention.ms": "1",
            "min.cleanable.dirty.ratio": "0.1",
            "min.compaction.lag.ms": "2",
            "max.compaction.lag.ms": "3",
            "segment.bytes": "4",
        }
    ) == CleanupPolicy(
        is_compacted=True,
        delete_retention_ms=1,
        dirty_ratio_min=0.1,
        lag_ms_min=2,
        lag_ms_max=3,
        segment_bytes=4,
    )
