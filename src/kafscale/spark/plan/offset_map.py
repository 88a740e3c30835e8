"""Which offsets lie in which objects, as one look at the store shows it.

The laws:

* A segment ends where the next one begins, so of the listing alone everything but the last end is
  known; where segments overlap, because merged ones are beside those that they replace, each still
  holds at least what the map says.
* Beyond the segments lies what the WAL holds, as far as it is contiguous: the end of a map is a
  high watermark, because only objects that count are handed in. What comes after a gap is not
  shown, unless the gap is known to be a loss.
* A map may be outdated the moment it is made. Whoever reads by it checks what is found, and looks
  again where objects have gone.

Pure: listing and reading is left to `survey`.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final

import msgspec

from kafscale.storage.formats import segment

TopicPartition = tuple[str, int]
"""A topic and a partition."""

_end_of = attrgetter("end_offset")

_OVERHEAD_BYTES: Final = segment.HEADER_BYTES + segment.FOOTER_BYTES


class Extent(msgspec.Struct, frozen=True, gc=False):
    """A run of offsets, and the bytes of an object that hold it, perhaps with others around."""

    start_offset: int
    end_offset: int
    key: str
    position: int
    length: int
    is_wal: bool = False
    max_timestamp_ms: int | None = None
    """Of all records there, where it is known without reading more."""
    is_cut: bool = False
    """Whether the bytes hold later offsets, too."""


class WalRun(msgspec.Struct, frozen=True, gc=False):
    """What a WAL object that counts holds of a partition."""

    key: str
    topic_id: bytes
    position: int
    length: int
    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    modified_ms: int


class CatalogTopic(msgspec.Struct, frozen=True):
    """A topic in the catalog that brokers publish."""

    name: str
    id: bytes
    partitions: int
    configs: Mapping[str, str] = {}


class PartitionOffsets(msgspec.Struct, frozen=True):
    """Where the records of a partition are."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    extents: tuple[Extent, ...] = ()
    """Ascending, and none overlaps another."""

    def extents_between(self, start_offset: int, end_offset: int) -> list[Extent]:
        """The extents that hold these offsets; their bytes are still those of the whole."""
        return [
            msgspec.structs.replace(
                extent,
                start_offset=max(extent.start_offset, start_offset),
                end_offset=min(extent.end_offset, end_offset),
                is_cut=extent.end_offset > end_offset,
            )
            for extent in self._touched(start_offset, end_offset)
        ]

    def bytes_between(self, start_offset: int, end_offset: int) -> int:
        """How many bytes these offsets take, roughly where they end within an extent."""
        total = 0
        for extent in self._touched(start_offset, end_offset):
            held = min(extent.end_offset, end_offset) - max(extent.start_offset, start_offset)
            total += extent.length * held // (extent.end_offset - extent.start_offset)
        return total

    def _touched(self, start_offset: int, end_offset: int) -> Iterator[Extent]:
        extents = self.extents  # There may be a great many, so none but the touched are looked at.
        for number in range(bisect_right(extents, start_offset, key=_end_of), len(extents)):
            if extents[number].start_offset >= end_offset:
                break
            yield extents[number]


class OffsetMap(msgspec.Struct, frozen=True):
    """The partitions of the topics that were asked for."""

    partitions: Mapping[TopicPartition, PartitionOffsets]
    catalog: Mapping[str, CatalogTopic] = {}
    """The catalog, by name; empty where there is none."""

    @property
    def topics(self) -> list[str]:
        return sorted({topic for topic, _ in self.partitions})


def build(
    topic_partition: TopicPartition,
    segments: Sequence[tuple[str, int, int]],
    segments_end: int,
    runs: Iterable[WalRun],
    *,
    start_offset: int = 0,
    allow_gaps: bool = False,
) -> tuple[PartitionOffsets, bool]:
    """The map of a partition, and whether something lies beyond a gap that it does not show.

    Segments are given by key, base offset and size, ascending; with where the last one ends.
    """
    extents = []
    for number, (key, base_offset, size_bytes) in enumerate(segments):
        is_last = number + 1 == len(segments)
        end_offset = segments_end if is_last else segments[number + 1][1]
        extents.append(
            Extent(base_offset, end_offset, key, segment.HEADER_BYTES, size_bytes - _OVERHEAD_BYTES)
        )
    has_gap = False
    end = extents[-1].end_offset if extents else None
    for run in sorted(runs, key=attrgetter("base_offset", "last_offset")):
        if end is not None and run.last_offset < end:
            continue
        if end is not None and run.base_offset > end and not allow_gaps:
            has_gap = True
            break
        begin = run.base_offset if end is None else max(run.base_offset, end)
        end = run.last_offset + 1
        extents.append(
            Extent(
                begin,
                end,
                run.key,
                run.position,
                run.length,
                is_wal=True,
                max_timestamp_ms=run.max_timestamp_ms,
            )
        )
    first = extents[0].start_offset if extents else 0
    start = max(first, start_offset)
    return PartitionOffsets(*topic_partition, start, max(end or 0, start), tuple(extents)), has_gap
