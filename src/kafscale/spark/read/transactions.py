"""Reads the transactions of partitions: their last stable offsets, and what was aborted.

A partition without transactions costs no request: the listing shows which ones have some, in
segments or in the WAL. For these, the index of the last segment says what is open at its end, and
the WAL objects behind it, as far as they have batches of transactions of the partition, are read
once. For aborted transactions the indexes of the segments are read whose offsets are to be read,
and those of later ones until all their transactions have ended.

An index that is missing or damaged, or was rebuilt without its sections, is replaced by the batches
of its segment.
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
from kafscale.storage.bucket import READS_MAX, read_index
from kafscale.storage.formats import object_keys
from kafscale.storage.formats.index_section import PRODUCERS_SECTION, TRANSACTIONS_SECTION
from kafscale.storage.log.state.transactions import (
    AbortedTransaction,
    OpenTransaction,
    TransactionSection,
    TransactionSpans,
)
from kafscale.storage.objects.store import ObjectStore

CHUNK_BYTES: Final = 8 * 1024 * 1024
SECTIONS_MAX: Final = 10_000
"""How many sections are kept: a stream needs those of the newest segments only."""

_Place = tuple[str, int]

_start_offset = attrgetter("start_offset")


class TransactionReader:
    """Reads transactions; what was read once, is kept."""

    def __init__(self) -> None:
        self._sections: dict[_Place, TransactionSection] = {}
        """By the key and the size of a segment."""
        self._events: dict[_Place, tuple[TransactionEvent, ...]] = {}
        """By the key of an object and the position of an extent."""

    def keep(self, partitions: Iterable[PartitionOffsets]) -> None:
        """Forget WAL objects that are in none of these partitions."""
        places = {(extent.key, extent.position) for each in partitions for extent in _wal_of(each)}
        self._events = {place: self._events[place] for place in places & self._events.keys()}
        if len(self._sections) > SECTIONS_MAX:
            self._sections.clear()

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
        found: set[AbortedTransaction] = set()
        if partition.has_transactions and from_offset < to_offset:
            await self._collect(store, partition, from_offset, to_offset, found)
        if partition.has_transactions and with_open:
            opened, _ = await self._tail(store, partition)
            ends = count(partition.high_watermark)  # Each needs an end of its own.
            found.update(AbortedTransaction(*each, next(ends)) for each in opened.items())
        # While segments are being merged, two of them may have the same transaction.
        return TransactionSpans.of(sorted(found, key=lambda each: each.last_offset))

    async def _collect(
        self,
        store: ObjectStore,
        partition: PartitionOffsets,
        from_offset: int,
        to_offset: int,
        found: set[AbortedTransaction],
    ) -> None:
        segments = _segments_of(partition) if partition.has_rolled_transactions else []
        numbers = [
            number for number, segment in enumerate(segments) if segment.end_offset > from_offset
        ]
        needed = [segments[each] for each in numbers if segments[each].start_offset < to_offset]
        await map_limited(partial(self._section, store), needed, READS_MAX)
        for number in numbers:
            section = await self._known_section(store, segments, number)
            found.update(
                section.aborted[index]
                for index in section.aborted.overlapping(from_offset, to_offset)
            )
            first_open = section.first_open_offset
            is_closed = first_open is None or first_open >= to_offset
            if segments[number].end_offset >= to_offset and is_closed:
                return
        _, aborted = await self._tail(store, partition)
        found.update(
            each
            for each in aborted
            if each.first_offset < to_offset and each.last_offset >= from_offset
        )

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
        section: TransactionSection | None = None
        while known and (section := await self._section(store, segments[known - 1])) is None:
            known -= 1
        opened = {each.producer_id: each.first_offset for each in section.open} if section else {}
        for extent in segments[known:number]:
            replay(opened, await self._read_events(store, extent), extent.start_offset)
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
        aborted = replay(opened, await self._read_events(store, extent), extent.start_offset)
        first_offsets = sorted((first, producer_id) for producer_id, first in opened.items())
        section = TransactionSection(
            [OpenTransaction(producer_id, -1, first, -1) for first, producer_id in first_offsets],
            TransactionSpans.of(aborted),
            [],
        )
        self._sections[extent.key, extent.segment_bytes] = section
        return section

    async def _section(self, store: ObjectStore, extent: Extent) -> TransactionSection | None:
        """Read the section of a segment's index; None if the index says nothing."""
        place = extent.key, extent.segment_bytes
        if place in self._sections:
            return self._sections[place]
        section = await _read_section(store, extent)
        if section is not None:  # Otherwise the owner may be about to write the index.
            self._sections[place] = section
        return section

    # --- batches ------------------------------------------------------------------------------

    async def _read_events(
        self, store: ObjectStore, extent: Extent
    ) -> tuple[TransactionEvent, ...]:
        """Read the batches of an extent."""
        place = extent.key, extent.position
        if place not in self._events:
            try:
                self._events[place] = tuple(await _read_events(store, extent))
            except RecordsError as error:
                raise DamagedObjectError(extent.key, str(error)) from error
        return self._events[place]


def _segments_of(partition: PartitionOffsets) -> list[Extent]:
    return [extent for extent in partition.extents if not extent.is_wal]


def _wal_of(partition: PartitionOffsets) -> list[Extent]:
    return [extent for extent in partition.extents if extent.is_wal]


async def _read_section(store: ObjectStore, extent: Extent) -> TransactionSection | None:
    entries = await read_index(store, extent.key, extent.segment_bytes)
    if entries is None:
        return None
    encoded = entries.sections.get(TRANSACTIONS_SECTION)
    if encoded is None:
        return TransactionSection.empty() if PRODUCERS_SECTION in entries.sections else None
    try:
        return TransactionSection.decode(object_keys.index_key_of(extent.key), encoded)
    except DamagedObjectError:
        return None


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
