"""Which partitions are compacted, and up to where: the rules of Kafka's log cleaner.

    log start … clean end … cleanable end … end of the log
    | compacted before |  dirty      |  head: stays as it is, but counts as newer

A partition is worth compacting if the dirty share of what is cleanable exceeds
`min.cleanable.dirty.ratio`, or if dirty records have waited for more than `max.compaction.lag.ms`.
Records younger than `min.compaction.lag.ms`, with all that follows them, and what is not in
segments yet, are the head. Pure: times and marks are handed in.
"""

from collections.abc import Callable

import msgspec

from kafscale.spark.jobs.compact.cleanup_policy import LONG_MAX, Policy
from kafscale.spark.jobs.merge.grouping import Group, grouped, segments_of
from kafscale.spark.plan.offset_map import Extent, PartitionOffsets, TopicPartition


class Candidate(msgspec.Struct, frozen=True):
    """A partition that may be compacted."""

    found: PartitionOffsets
    policy: Policy
    clean_end: int
    """Up to where it was compacted before."""
    cleanable_end: int
    """Up to where it can be compacted now: an end of a segment."""

    @property
    def place(self) -> TopicPartition:
        return self.found.topic, self.found.partition

    @property
    def cleanable(self) -> list[Extent]:
        """The segments that can be compacted."""
        return [each for each in segments_of(self.found) if each.end_offset <= self.cleanable_end]

    @property
    def dirty_ratio(self) -> float:
        """Which share of what can be compacted never was."""
        total = sum(each.length for each in self.cleanable)
        dirty = self.found.bytes_between(self.clean_end, self.cleanable_end)
        return dirty / total if total else 0.0


def cleanable_end(found: PartitionOffsets, head_start: int | None) -> int:
    """The end of the last segment that is wholly before the head; 0 if there is none."""
    ends = (each.end_offset for each in segments_of(found))
    return max((end for end in ends if head_start is None or end <= head_start), default=0)


def is_due(candidate: Candidate, dirty_since_ms: Callable[[], int | None], now_ms: int) -> bool:
    """Whether compacting is worthwhile; the time of the first dirty record is asked for if needed.

    A segment that goes on beyond the clean end counts in proportion.
    """
    if candidate.clean_end >= candidate.cleanable_end:
        return False
    policy = candidate.policy
    if candidate.dirty_ratio > policy.dirty_ratio_min:
        return True
    since_ms = None if policy.lag_ms_max == LONG_MAX else dirty_since_ms()
    return since_ms is not None and now_ms - since_ms > policy.lag_ms_max


def groups(candidate: Candidate, target_bytes: int = 0) -> list[Group]:
    """What is rewritten: segments of which one becomes, even where nothing can be left out."""
    bytes_max = target_bytes or candidate.policy.segment_bytes
    return list(grouped(candidate.found, candidate.cleanable, bytes_max))
