"""Which neighbouring segments become one.

The laws: a group is a run of whole segments, so that its owner can swap in what is made of it; what
is made of it fits the limits of the format, even if nothing can be left out; and groups keep the
order of the log. Pure: it knows the map of a partition only.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from kafscale.errors import UnknownTopicError
from kafscale.spark.jobs.shared.batch_rewrite import SPAN_MAX
from kafscale.spark.plan.offset_map import Extent, OffsetMap, PartitionOffsets, TopicPartition
from kafscale.spark.plan.task_planner import Slice
from kafscale.storage.formats import segment

OVERHEAD_BYTES: Final = segment.HEADER_BYTES + segment.FOOTER_BYTES
TARGET_BYTES_MAX: Final = segment.SEGMENT_BYTES_MAX // 2
"""The largest size that can be asked for. Batches may grow a little when they are rebuilt."""


class Group(msgspec.Struct, frozen=True):
    """Neighbouring segments, of which one is to be made."""

    topic: str
    partition: int
    sources: tuple[Extent, ...]

    @property
    def place(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def base_offset(self) -> int:
        return self.sources[0].start_offset

    @property
    def end_offset(self) -> int:
        return self.sources[-1].end_offset

    @property
    def size_bytes(self) -> int:
        return sum(map(size_bytes, self.sources))

    @property
    def slice(self) -> Slice:
        """What to read."""
        return Slice(self.topic, self.partition, self.base_offset, self.end_offset, self.sources)


def size_bytes(source: Extent) -> int:
    """The size of a segment's object."""
    return source.length + OVERHEAD_BYTES


def segments_of(found: PartitionOffsets) -> list[Extent]:
    """The segments of a partition, without what is in the WAL only."""
    return [extent for extent in found.extents if not extent.is_wal]


def check_known(found: OffsetMap, names: Iterable[str]) -> None:
    """Raise unless all topics that were named exist."""
    for name in names:
        if name not in found.catalog and name not in found.topics:
            raise UnknownTopicError(f"there is no topic {name!r}")


def grouped(found: PartitionOffsets, sources: Iterable[Extent], bytes_max: int) -> Iterator[Group]:
    """Neighbouring segments put together, as many as stay within a size; some stay alone.

    A segment that spans more offsets than a batch can is left out, and so parts its neighbours.
    """
    assert 0 < bytes_max <= TARGET_BYTES_MAX
    waiting: list[Extent] = []
    waiting_bytes = 0
    for source in sources:
        is_too_wide = source.end_offset - source.start_offset > SPAN_MAX
        fits = (
            bool(waiting)
            and not is_too_wide
            and source.start_offset == waiting[-1].end_offset
            and source.end_offset - waiting[0].start_offset <= SPAN_MAX
            and waiting_bytes + size_bytes(source) <= bytes_max
        )
        if waiting and not fits:
            yield Group(found.topic, found.partition, tuple(waiting))
            waiting, waiting_bytes = [], 0
        if not is_too_wide:
            waiting.append(source)
            waiting_bytes += size_bytes(source)
    if waiting:
        yield Group(found.topic, found.partition, tuple(waiting))
