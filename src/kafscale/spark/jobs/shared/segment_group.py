"""Groups of neighbouring segments, each of which a job rewrites as one segment.

Invariants: a group is a sequence of whole segments, so that the owner of the partition can swap it
for one segment; the new segment stays within the limits of the format even if no record can be
dropped; groups are in log order. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from kafscale.errors import UnknownTopicError
from kafscale.records.batch_rewrite import SPAN_MAX
from kafscale.spark.plan.offset_map import Extent, OffsetMap, PartitionOffsets
from kafscale.spark.plan.task_planner import Slice
from kafscale.storage.formats import object_keys, segment
from kafscale.text.topic_partition import TopicPartition

SEGMENT_BYTES_DEFAULT: Final = 100 * 1024 * 1024
TARGET_BYTES_MAX: Final = segment.SEGMENT_BYTES_MAX // 2
"""The largest target size. Batches may grow a little when they are rebuilt."""


class SegmentGroup(msgspec.Struct, frozen=True):
    """Neighbouring segments that are rewritten as one."""

    topic: str
    partition: int
    sources: tuple[Extent, ...]

    @property
    def topic_partition(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def directory(self) -> str:
        """The part of object keys that stands for the topic."""
        return object_keys.directory_of(self.sources[0].key)

    @property
    def base_offset(self) -> int:
        return self.sources[0].start_offset

    @property
    def end_offset(self) -> int:
        return self.sources[-1].end_offset

    @property
    def size_bytes(self) -> int:
        return sum(source.segment_bytes for source in self.sources)

    @property
    def slice(self) -> Slice:
        """The offsets to read."""
        return Slice(self.topic, self.partition, self.base_offset, self.end_offset, self.sources)


def segment_bytes_of(configs: Mapping[str, str]) -> int:
    """Return the target size of a topic's segments: its `segment.bytes`, or the default."""
    return min(int(configs.get("segment.bytes", SEGMENT_BYTES_DEFAULT)), TARGET_BYTES_MAX)


def segments_of(partition: PartitionOffsets) -> list[Extent]:
    """Return the segments of a partition, without its WAL extents."""
    return [extent for extent in partition.extents if not extent.is_wal]


def check_topics_exist(offset_map: OffsetMap, names: Iterable[str]) -> None:
    """Raise `UnknownTopicError` unless all named topics exist."""
    for name in names:
        if name not in offset_map.catalog and name not in offset_map.topics:
            raise UnknownTopicError(f"there is no topic {name!r}")


def group_segments(
    partition: PartitionOffsets, sources: Iterable[Extent], bytes_max: int
) -> Iterator[SegmentGroup]:
    """Group neighbouring segments up to a total size; a group may have a single segment.

    A segment that spans more offsets than a batch can is in no group, and ends the group before it.
    """
    assert 0 < bytes_max <= TARGET_BYTES_MAX
    pending: list[Extent] = []
    pending_bytes = 0
    for source in sources:
        is_too_wide = source.end_offset - source.start_offset > SPAN_MAX
        fits = (
            bool(pending)
            and not is_too_wide
            and source.start_offset == pending[-1].end_offset
            and source.end_offset - pending[0].start_offset <= SPAN_MAX
            and pending_bytes + source.segment_bytes <= bytes_max
        )
        if pending and not fits:
            yield SegmentGroup(partition.topic, partition.partition, tuple(pending))
            pending, pending_bytes = [], 0
        if not is_too_wide:
            pending.append(source)
            pending_bytes += source.segment_bytes
    if pending:
        yield SegmentGroup(partition.topic, partition.partition, tuple(pending))
