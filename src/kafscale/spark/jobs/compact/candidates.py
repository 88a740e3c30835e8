"""Which partitions to compact, and up to which offset: the rules of Kafka's log cleaner.

The rules are those by which brokers compact, too: see `storage.compaction.rules`. The keys of the
head, which is not rewritten, count as newer. Pure: `dirty_ratio` reads timestamps from the bucket.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Self

import msgspec

from kafscale.spark.jobs.shared.segment_group import (
    SEGMENT_BYTES_DEFAULT,
    SegmentGroup,
    group_segments,
    segment_bytes_of,
    segments_of,
)
from kafscale.spark.plan.offset_map import Extent, PartitionOffsets
from kafscale.storage.compaction.rules import CompactionRules
from kafscale.text.topic_partition import TopicPartition


class CleanupPolicy(CompactionRules, frozen=True):
    """The configs of a topic that control compaction; the defaults are Kafka's."""

    is_compacted: bool = False
    segment_bytes: int = SEGMENT_BYTES_DEFAULT

    @classmethod
    def from_configs(cls, configs: Mapping[str, str]) -> Self:
        """Read the configs of a topic, as the topic catalog has them.

        >>> CleanupPolicy.from_configs({"cleanup.policy": "compact, delete"}).is_compacted
        True
        """
        policies = [word.strip() for word in configs.get("cleanup.policy", "").split(",")]
        values = {
            field: convert(configs[name])
            for name, (field, convert) in _FIELDS.items()
            if name in configs
        }
        return cls(
            **values, is_compacted="compact" in policies, segment_bytes=segment_bytes_of(configs)
        )


_FIELDS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "delete.retention.ms": ("delete_retention_ms", int),
    "min.cleanable.dirty.ratio": ("dirty_ratio_min", float),
    "min.compaction.lag.ms": ("lag_ms_min", int),
    "max.compaction.lag.ms": ("lag_ms_max", int),
}


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
    """Return the end of the last segment that is entirely before the head; 0 if there is none.

    Nothing at or above the last stable offset is compacted, where the partition ends.
    """
    limit = partition.end_offset if head_start is None else min(head_start, partition.end_offset)
    ends = (each.end_offset for each in segments_of(partition))
    return max((end for end in ends if end <= limit), default=0)


def is_due(candidate: Candidate, dirty_since_ms: Callable[[], int | None], now_ms: int) -> bool:
    """Whether to compact a partition.

    `dirty_since_ms` returns the time of the first dirty record; it is called only if needed.
    """
    if candidate.clean_end >= candidate.cleanable_end:
        return False
    since_ms = dirty_since_ms() if candidate.policy.has_lag_max else None
    return candidate.policy.is_due(candidate.dirty_ratio, since_ms, now_ms)


def groups(candidate: Candidate, target_bytes: int = 0) -> list[SegmentGroup]:
    """Return the groups of segments to rewrite, each of which fits into one segment."""
    bytes_max = target_bytes or candidate.policy.segment_bytes
    return list(group_segments(candidate.partition, candidate.cleanable, bytes_max))
