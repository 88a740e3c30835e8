"""Which partitions to compact, and up to which offset: the rules of Kafka's log cleaner.

    log start … clean end … cleanable end … log end
    |  compacted earlier  |  dirty  |  head: not rewritten, but its keys count as newer

A partition is due if the dirty share of its cleanable bytes exceeds `min.cleanable.dirty.ratio`, or
if a dirty record is older than `max.compaction.lag.ms`. The head consists of records that are not
in segments yet, and of records younger than `min.compaction.lag.ms` with all that follow them.
Pure: `dirty_ratio` reads timestamps and checkpoints from the bucket.
"""

from collections.abc import Callable, Mapping
from typing import Final, Self

import msgspec

from kafscale.spark.jobs.shared.segment_group import (
    SEGMENT_BYTES_DEFAULT,
    SegmentGroup,
    group_segments,
    segment_bytes_of,
    segments_of,
)
from kafscale.spark.plan.offset_map import Extent, PartitionOffsets
from kafscale.text.topic_partition import TopicPartition

DELETE_RETENTION_MS: Final = 24 * 3600 * 1000
DIRTY_RATIO_MIN: Final = 0.5
LONG_MAX: Final = 2**63 - 1


class CleanupPolicy(msgspec.Struct, frozen=True):
    """The configs of a topic that control compaction; the defaults are Kafka's."""

    is_compacted: bool = False
    delete_retention_ms: int = DELETE_RETENTION_MS
    """How long tombstones stay after the first compaction that sees them."""
    dirty_ratio_min: float = DIRTY_RATIO_MIN
    """Compact if a larger share of the cleanable bytes is dirty."""
    lag_ms_min: int = 0
    """Do not compact younger records."""
    lag_ms_max: int = LONG_MAX
    """Compact older dirty records, whatever the dirty ratio."""
    segment_bytes: int = SEGMENT_BYTES_DEFAULT

    @classmethod
    def from_configs(cls, configs: Mapping[str, str]) -> Self:
        """Read the configs of a topic, as the topic catalog has them.

        >>> CleanupPolicy.from_configs({"cleanup.policy": "compact, delete"}).is_compacted
        True
        """
        policies = [word.strip() for word in configs.get("cleanup.policy", "").split(",")]
        return cls(
            "compact" in policies,
            int(configs.get("delete.retention.ms", DELETE_RETENTION_MS)),
            float(configs.get("min.cleanable.dirty.ratio", DIRTY_RATIO_MIN)),
            int(configs.get("min.compaction.lag.ms", 0)),
            int(configs.get("max.compaction.lag.ms", LONG_MAX)),
            segment_bytes_of(configs),
        )


class Candidate(msgspec.Struct, frozen=True):
    """A partition that may be compacted."""

    partition: PartitionOffsets
    policy: CleanupPolicy
    clean_end: int
    """The end of what earlier runs have compacted."""
    cleanable_end: int
    """The end of what can be compacted now, which is the end of a segment."""

    @property
    def topic_partition(self) -> TopicPartition:
        return self.partition.topic, self.partition.partition

    @property
    def cleanable(self) -> list[Extent]:
        """The segments that can be compacted."""
        segments = segments_of(self.partition)
        return [each for each in segments if each.end_offset <= self.cleanable_end]

    @property
    def dirty_ratio(self) -> float:
        """The share of cleanable bytes that was never compacted.

        A segment that crosses the clean end counts in proportion.
        """
        total = sum(each.length for each in self.cleanable)
        dirty = self.partition.bytes_between(self.clean_end, self.cleanable_end)
        return dirty / total if total else 0.0


def cleanable_end(partition: PartitionOffsets, head_start: int | None) -> int:
    """Return the end of the last segment that is entirely before the head; 0 if there is none."""
    ends = (each.end_offset for each in segments_of(partition))
    return max((end for end in ends if head_start is None or end <= head_start), default=0)


def is_due(candidate: Candidate, dirty_since_ms: Callable[[], int | None], now_ms: int) -> bool:
    """Whether to compact a partition.

    `dirty_since_ms` returns the time of the first dirty record; it is called only if needed.
    """
    if candidate.clean_end >= candidate.cleanable_end:
        return False
    policy = candidate.policy
    if candidate.dirty_ratio > policy.dirty_ratio_min:
        return True
    since_ms = None if policy.lag_ms_max == LONG_MAX else dirty_since_ms()
    return since_ms is not None and now_ms - since_ms > policy.lag_ms_max


def groups(candidate: Candidate, target_bytes: int = 0) -> list[SegmentGroup]:
    """Return the groups of segments to rewrite, each of which fits into one segment."""
    bytes_max = target_bytes or candidate.policy.segment_bytes
    return list(group_segments(candidate.partition, candidate.cleanable, bytes_max))
