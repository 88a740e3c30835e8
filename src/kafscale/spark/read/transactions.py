"""Reads the transactions of partitions: their last stable offsets, and what was aborted.

A partition without transactions costs no request: the listing shows which ones have some, in
segments or in the WAL. For these, the index of the last segment says what is open at its end, and
the WAL objects behind it, as far as they have batches of transactions of the partition, are read
once. For aborted transactions the indexes of the segments are read whose offsets are to be read,
and those of later ones until all their transactions have ended.

An index that is missing or damaged, or was rebuilt without its sections, is replaced by the batches
of its segment. While segments are being merged, a merged one reaches beyond the beginning of the
next one, and its index speaks of its own end: what is open where the next one begins, its batches
say.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import count
from operator import attrgetter
from typing import Final

import msgspec

from kafscale.aio.gather import map_limited
from kafscale.errors import DamagedObjectError, RecordsError
from kafscale.records import split
from kafscale.spark.plan.offset_map import Extent, PartitionOffsets
from kafscale.spark.plan.transactions import OpenOffsets, TransactionEvent, events_of, replay
from kafscale.storage.bucket import READS_MAX, read_index, read_segment_footer
from kafscale.storage.formats import object_keys
from kafscale.storage.formats.index_section import PRODUCERS_SECTION, TRANSACTIONS_SECTION
from kafscale.storage.log.state.transactions import (
    AbortedByMarker,
    AbortedTransaction,
    OpenTransaction,
    TransactionSection,
    TransactionSpans,
)
from kafscale.storage.objects.store import ObjectStore

CHUNK_BYTES: Final = 8 * 1024 * 1024
SECTIONS_BYTES_MAX: Final = 64 * 1024 * 1024
"""Memory for sections: a stream needs those of the newest segments only."""
_SECTION_BYTES: Final = 1024
"""Approximate memory of a section besides its lists."""
_OPEN_BYTES: Final = 200
"""Approximate memory of an open transaction."""

_Place = tuple[str, int, int]

_start_offset = attrgetter("start_offset")


class TransactionReader:
    """Reads transactions; what was read once, is kept."""

    def __init__(self) -> None:
        self._sections: dict[_Place, TransactionSection] = {}
        """By key and size of a segment, which is replaced under its key, and where it ends."""
        self._sections_bytes = 0
        self._events: dict[_Place, tuple[TransactionEvent, ...]] = {}
        """By the key of an object, and position and length of an extent."""

    def keep(self, partitions: Iterable[PartitionOffsets]) -> None:
        """Forget WAL objects that are in none of these partitions."""
        places = {_bytes_of(extent) for each in partitions for extent in _wal_of(each)}
        self._events = {place: self._events[place] for place in places & self._events.keys()}

    async def committed(self, store: ObjectStore, partition: PartitionOffsets) -> PartitionOffsets:
        """Let a partition end at its last stable offset."""
        if not partition.has_transactions:
            return partition
        opened, _ = await self._tail(store, partition)
        end = partition.end_offset
        stable = min((max(first, partition.start_offset) for first in opened.values()), default=end)
        return msgspec.structs.replace(
            partition,
            end_offset=min(stable, end),
            withheld_count=partition.withheld_count + max(end - stable, 0),
        )

    async def open_producers(
        self, store: ObjectStore, partition: PartitionOffsets, offset: int
    ) -> tuple[int, ...]:
        """Return the producers with an open transaction where a segment begins."""
        segments = _segments_of(partition)
        number = bisect_left(segments, offset, key=_start_offset)
        return tuple(await self._open_at(store, segments, number))

    async def aborted(
        self,
        store: ObjectStore,
        partition: PartitionOffsets,
        from_offset: int,
        to_offset: int,
        *,
        with_open: bool = False,
    ) -> TransactionSpans:
        """Return the aborted transactions that touch some offsets of a partition.

        With `with_open`, those that are open at the high watermark count as aborted.
        """
        found = AbortedByMarker()
        if partition.has_transactions and from_offset < to_offset:
            await self._collect(store, partition, from_offset, to_offset, found)
        if partition.has_transactions and with_open:
            opened, _ = await self._tail(store, partition)
            ends = count(partition.high_watermark)  # Each needs an end of its own.
            for each in opened.items():
                found.add(AbortedTransaction(*each, next(ends)))
        return TransactionSpans.of(found.in_order())

    async def _collect(
        self,
        store: ObjectStore,
        partition: PartitionOffsets,
        from_offset: int,
        to_offset: int,
        found: AbortedByMarker,
    ) -> None:
        segments = _segments_of(partition) if partition.has_rolled_transactions else []
        numbers = [
            number for number, segment in enumerate(segments) if segment.end_offset > from_offset
        ]
        needed = [segments[each] for each in numbers if segments[each].start_offset < to_offset]
        await map_limited(partial(self._section, store), needed, READS_MAX)
        for number in numbers:
            section = await self._known_section(store, segments, number)
            for index in section.aborted.overlapping(from_offset, to_offset):
                found.add(section.aborted[index])
            first_open = section.first_open_offset
            is_closed = first_open is None or first_open >= to_offset
            if segments[number].end_offset >= to_offset and is_closed:
                return
        _, aborted = await self._tail(store, partition)
        for each in aborted:
            if each.first_offset < to_offset and each.last_offset >= from_offset:
                found.add(each)

    async def _tail(
        self, store: ObjectStore, partition: PartitionOffsets
    ) -> tuple[OpenOffsets, list[AbortedTransaction]]:
        """Return what is open at the high watermark, and what was aborted since the segments."""
        opened: OpenOffsets = {}
        if partition.has_rolled_transactions:
            segments = _segments_of(partition)
            opened = await self._open_at(store, segments, len(segments))
        aborted: list[AbortedTransaction] = []
        extents = [extent for extent in _wal_of(partition) if extent.is_transactional]
        extents.sort(key=lambda extent: extent.start_offset)
        read = await map_limited(partial(self._read_events, store), extents, READS_MAX)
        for extent, events in zip(extents, read, strict=True):
            aborted += replay(opened, events, extent.start_offset)
        return opened, aborted

    # --- segments -----------------------------------------------------------------------------

    async def _open_at(
        self, store: ObjectStore, segments: Sequence[Extent], number: int
    ) -> OpenOffsets:
        """Return what is open at the beginning of a segment, by number."""
        known = number
        opened: OpenOffsets = {}
        while known:
            extent = segments[known - 1]
            section = await self._section(store, extent)
            # The listing has read where the last segment ends.
            is_last = known == len(segments)
            if section is not None and (is_last or await _ends_with(store, extent)):
                opened = {each.producer_id: each.first_offset for each in section.open}
                break
            known -= 1
        for extent in segments[known:number]:
            await self._replay(store, extent, opened)
        return opened

    async def _known_section(
        self, store: ObjectStore, segments: Sequence[Extent], number: int
    ) -> TransactionSection:
        """Return the section of a segment, or what it would say."""
        extent = segments[number]
        section = await self._section(store, extent)
        if section is not None:
            return section
        opened = await self._open_at(store, segments, number)
        aborted = await self._replay(store, extent, opened)
        first_offsets = sorted((first, producer_id) for producer_id, first in opened.items())
        section = TransactionSection(
            [OpenTransaction(producer_id, -1, first, -1) for first, producer_id in first_offsets],
            TransactionSpans.of(aborted),
            [],
        )
        self._keep_section(extent, section)
        return section

    async def _section(self, store: ObjectStore, extent: Extent) -> TransactionSection | None:
        """Read the section of a segment's index; None if the index says nothing."""
        if (kept := self._sections.get(_segment_of(extent))) is not None:
            return kept
        section = await _read_section(store, extent)
        if section is not None:  # Otherwise the owner may be about to write the index.
            self._keep_section(extent, section)
        return section

    def _keep_section(self, extent: Extent, section: TransactionSection) -> None:
        size_bytes = _SECTION_BYTES + _OPEN_BYTES * len(section.open) + section.aborted.size_bytes
        if self._sections_bytes + size_bytes > SECTIONS_BYTES_MAX:
            self._sections.clear()
            self._sections_bytes = 0
        self._sections[_segment_of(extent)] = section
        self._sections_bytes += size_bytes

    # --- batches ------------------------------------------------------------------------------

    async def _replay(
        self, store: ObjectStore, extent: Extent, opened: OpenOffsets
    ) -> list[AbortedTransaction]:
        """Update what is open by the batches of an extent; return what they abort."""
        events = await self._read_events(store, extent)
        own = [event for event in events if event.offset < extent.end_offset]
        return replay(opened, own, extent.start_offset)

    async def _read_events(
        self, store: ObjectStore, extent: Extent
    ) -> tuple[TransactionEvent, ...]:
        """Read the batches of an extent, maybe with later offsets than those of the extent."""
        place = _bytes_of(extent)
        if place not in self._events:
            try:
                self._events[place] = tuple(await _read_events(store, extent))
            except RecordsError as error:
                raise DamagedObjectError(extent.key, str(error)) from error
        return self._events[place]


def _bytes_of(extent: Extent) -> _Place:
    return extent.key, extent.position, extent.length


def _segment_of(extent: Extent) -> _Place:
    return extent.key, extent.segment_bytes, extent.end_offset


def _segments_of(partition: PartitionOffsets) -> list[Extent]:
    return [extent for extent in partition.extents if not extent.is_wal]


def _wal_of(partition: PartitionOffsets) -> list[Extent]:
    return [extent for extent in partition.extents if extent.is_wal]


async def _ends_with(store: ObjectStore, extent: Extent) -> bool:
    """Whether a segment ends where its extent does."""
    return (await read_segment_footer(store, extent.key)).last_offset + 1 == extent.end_offset


async def _read_section(store: ObjectStore, extent: Extent) -> TransactionSection | None:
    entries = await read_index(store, extent.key, extent.segment_bytes)
    if entries is None:
        return None
    encoded = entries.sections.get(TRANSACTIONS_SECTION)
    if encoded is None:
        return TransactionSection.empty() if PRODUCERS_SECTION in entries.sections else None
    try:
        section = TransactionSection.decode(object_keys.index_key_of(extent.key), encoded)
    except DamagedObjectError:
        return None
    return msgspec.structs.replace(section, marked=[])  # Producers of all times, not needed here.


async def _read_events(store: ObjectStore, extent: Extent) -> list[TransactionEvent]:
    """Read all batches of an extent, a chunk at a time."""
    events: list[TransactionEvent] = []
    begun: set[int] = set()
    position, end = extent.position, extent.position + extent.length
    chunk_bytes = CHUNK_BYTES
    while position < end:
        data = await store.get_range(extent.key, position, min(position + chunk_bytes, end))
        whole = split(data, partial_ok=True)
        if not whole and position + chunk_bytes >= end:
            raise DamagedObjectError(extent.key, f"its last batch is cut off at {position}")
        for batch in whole:
            batch.verify_checksum()
        events += events_of(whole, begun)
        position += sum(map(len, whole))
        chunk_bytes = CHUNK_BYTES if whole else 2 * chunk_bytes
    return events
