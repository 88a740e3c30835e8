"""Maps offsets to the objects that hold them, as one listing of the bucket shows them.

Invariants:

* A segment ends where the next one begins, so a listing gives every end except the last. Where
  segments overlap, because merged segments exist beside those they replace, each still holds at
  least the offsets that the map assigns to it.
* After the segments come the offsets of the WAL, as far as they are contiguous. Only acknowledged
  WAL objects are passed in, so the end of a partition is a high watermark. Offsets after a gap are
  left out, unless the gap is known to be a loss.
* A map may be outdated as soon as it is built. Readers verify what they find, and list the bucket
  again when objects are missing.

Pure: `read.bucket_listing` lists and reads objects.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from operator import attrgetter
from typing import Final

import msgspec

from kafscale.spark.plan.transactions import overlapping
from kafscale.storage.formats import segment
from kafscale.storage.log.state.transactions import TransactionSpans
from kafscale.storage.topic_catalog import CatalogTopic
from kafscale.text.topic_partition import TopicPartition

_end_offset = attrgetter("end_offset")

_OVERHEAD_BYTES: Final = segment.HEADER_BYTES + segment.FOOTER_BYTES


class Extent(msgspec.Struct, frozen=True, gc=False):
    """A range of offsets, and the byte range of an object that holds them and maybe others."""

    start_offset: int
    end_offset: int
    key: str
    position: int
    length: int
    is_wal: bool = False
    max_timestamp_ms: int | None = None
    """The greatest timestamp of the records, if known without further reads."""
    is_cut: bool = False
    """Whether the bytes also hold later offsets."""
    is_transactional: bool = False
    """Whether batches of transactions may be in the bytes; unknown for segments."""

    @property
    def segment_bytes(self) -> int:
        """The size of the segment, if the extent is one."""
        return self.position + self.length + segment.FOOTER_BYTES


class WalRun(msgspec.Struct, frozen=True, gc=False):
    """The batches of one partition in an acknowledged WAL object."""

    key: str
    topic_id: bytes
    position: int
    length: int
    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    modified_ms: int
    is_transactional: bool = False


class PartitionOffsets(msgspec.Struct, frozen=True):
    """Where the records of a partition are stored."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    extents: tuple[Extent, ...] = ()
    """Ascending, without overlaps."""
    withheld_count: int = 0
    """How many durable offsets follow the end; the first of them is in an open transaction."""
    has_rolled_transactions: bool = False
    """Whether segments have batches of transactions."""
    aborted: TransactionSpans | None = None
    """The aborted transactions of the offsets that are to be read."""

    @property
    def high_watermark(self) -> int:
        return self.end_offset + self.withheld_count

    @property
    def has_transactions(self) -> bool:
        wal = takewhile(attrgetter("is_wal"), reversed(self.extents))
        return self.has_rolled_transactions or any(extent.is_transactional for extent in wal)

    def aborted_between(self, start_offset: int, end_offset: int) -> TransactionSpans | None:
        """Return the aborted transactions that touch these offsets."""
        if self.aborted is None or not len(self.aborted):
            return None
        return overlapping(self.aborted, start_offset, end_offset)

    def extents_between(self, start_offset: int, end_offset: int) -> list[Extent]:
        """Return the extents of these offsets, clipped to them; byte ranges stay whole."""
        return [
            msgspec.structs.replace(
                extent,
                start_offset=max(extent.start_offset, start_offset),
                end_offset=min(extent.end_offset, end_offset),
                is_cut=extent.end_offset > end_offset,
            )
            for extent in self._overlapping(start_offset, end_offset)
        ]

    def bytes_between(self, start_offset: int, end_offset: int) -> int:
        """Return the size of these offsets; an estimate where they end within an extent."""
        total = 0
        for extent in self._overlapping(start_offset, end_offset):
            count = min(extent.end_offset, end_offset) - max(extent.start_offset, start_offset)
            total += extent.length * count // (extent.end_offset - extent.start_offset)
        return total

    def _overlapping(self, start_offset: int, end_offset: int) -> Iterator[Extent]:
        extents = self.extents  # There may be very many: only overlapping ones are visited.
        for index in range(bisect_right(extents, start_offset, key=_end_offset), len(extents)):
            if extents[index].start_offset >= end_offset:
                break
            yield extents[index]


class OffsetMap(msgspec.Struct, frozen=True):
    """The partitions of the listed topics."""

    partitions: Mapping[TopicPartition, PartitionOffsets]
    catalog: Mapping[str, CatalogTopic] = {}
    """The topic catalog by topic name; empty if brokers publish none."""

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
    has_rolled_transactions: bool = False,
) -> tuple[PartitionOffsets, bool]:
    """Build the map of a partition; also return whether offsets after a gap were left out.

    Segments are given as key, base offset and size, ascending, with the end of the last one.
    """
    extents = []
    for index, (key, base_offset, size_bytes) in enumerate(segments):
        is_last = index + 1 == len(segments)
        end_offset = segments_end if is_last else segments[index + 1][1]
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
                is_transactional=run.is_transactional,
            )
        )
    first = extents[0].start_offset if extents else 0
    start = max(first, start_offset)
    partition = PartitionOffsets(
        *topic_partition,
        start,
        max(end or 0, start),
        tuple(extents),
        has_rolled_transactions=has_rolled_transactions,
    )
    return partition, has_gap
