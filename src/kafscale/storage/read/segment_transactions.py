"""Finds the aborted transactions of a range of offsets, in segments and in memory.

A transaction overlaps the range if it begins before the range ends, and its marker is in the range
or after it. Markers are listed with the segment that holds them. So the search begins with the
segment that holds the first offset, and ends after the first one at whose end no transaction is
open that began before the range ends: its cost does not depend on the length of the log.

An index without sections says nothing about transactions, so the batches of its segment are read
once. Where transactions began whose first batches are in earlier segments, the section of the one
before says. If that is not known either, they count from the beginning of the segment: up to their
markers, it holds no other batches of their producers.

A swap that a crash interrupted leaves a segment that reaches beyond the beginning of the next one.
Its section speaks of its own end, so the batches say what is open where the next one begins.

Invariant: what is cached of a segment is that of the stored one: `forget` is called when it is
replaced or deleted.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from kafscale.errors import DamagedObjectError
from kafscale.observability.logging import get_logger
from kafscale.records import BatchView
from kafscale.records.batch import CONTROL_BIT
from kafscale.records.control import ControlType, is_of_transaction, read_end_marker
from kafscale.storage.formats import segment as segment_format
from kafscale.storage.formats.index_section import PRODUCERS_SECTION, TRANSACTIONS_SECTION
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.segment_list import Segment
from kafscale.storage.log.state.transactions import (
    AbortedByMarker,
    AbortedTransaction,
    OpenTransaction,
    TransactionSection,
    TransactionSpans,
)
from kafscale.storage.read.loading_cache import LoadingCache
from kafscale.storage.read.segment_indexes import SegmentIndexes

if TYPE_CHECKING:
    from kafscale.storage.read.log_reader import LogReader

logger = get_logger(__name__)

CACHE_BYTES_MAX: Final = 16 * 1024 * 1024
_SECTION_BYTES: Final = 1024
"""Approximate memory of a section besides its lists."""
_ENTRY_BYTES: Final = 200
"""Approximate memory of an open transaction or of a marked producer."""

_NONE: Final = TransactionSection.empty()

Open = Mapping[int, OpenTransaction]
"""The transactions that are open at an offset, by producer id."""


class ScannedSegment:
    """What the batches of a segment say about transactions."""

    __slots__ = ("_aborted", "_base_offset", "_begun", "_ended", "_resolved")

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._begun: dict[int, int] = {}
        """Where each producer's first batch is since its last marker."""
        self._ended: set[int] = set()
        """Producers with a marker."""
        self._aborted: list[tuple[AbortedTransaction, bool]] = []
        """With whether the marker is its producer's first one: then the transaction may have begun
        in an earlier segment. Without a batch here, it begins at its marker."""
        self._resolved: tuple[Open, bool, TransactionSection] | None = None

    @property
    def size_bytes(self) -> int:
        entries = len(self._begun) + len(self._ended) + 2 * len(self._aborted)
        return _ENTRY_BYTES * (entries + 1)

    def add(self, batches: Iterable[BatchView]) -> None:
        """Add the next batches; runs in a thread."""
        for batch in batches:
            if not is_of_transaction(batch):
                continue
            producer_id = batch.producer_id
            if not batch.attributes & CONTROL_BIT:
                self._begun.setdefault(producer_id, batch.base_offset)
            elif (marker := read_end_marker(batch)) is not None:
                offset = batch.base_offset
                first_offset = self._begun.pop(producer_id, offset)
                if marker.control_type is ControlType.ABORT:
                    aborted = AbortedTransaction(producer_id, first_offset, offset)
                    self._aborted.append((aborted, producer_id not in self._ended))
                self._ended.add(producer_id)

    @property
    def is_self_contained(self) -> bool:
        """Whether no aborted transaction can have begun in an earlier segment."""
        return not any(is_first for _, is_first in self._aborted)

    def section(self, before: Open, *, is_complete: bool) -> TransactionSection:
        """What the section would say, given what was open before, as far as that is known."""
        if self._resolved is None or self._resolved[:2] != (before, is_complete):
            self._resolved = before, is_complete, self._resolve(before, is_complete=is_complete)
        return self._resolved[2]

    def _resolve(self, before: Open, *, is_complete: bool) -> TransactionSection:
        spans = TransactionSpans()
        for (producer_id, first_offset, last_offset), is_first in self._aborted:
            begin = first_offset
            if is_first and producer_id in before:
                begin = before[producer_id].first_offset
            elif is_first and not is_complete:
                begin = self._base_offset
            if begin < last_offset:  # Else there are no batches.
                spans.append(producer_id, begin, last_offset)
        opened = {
            producer_id: OpenTransaction(producer_id, -1, first_offset, -1)
            for producer_id, first_offset in self._begun.items()
        }
        opened |= {
            producer_id: transaction
            for producer_id, transaction in before.items()
            if producer_id not in self._ended
        }
        return TransactionSection(sorted(opened.values(), key=_first_offset), spans, [])


class SegmentState(NamedTuple):
    """What a segment says about transactions."""

    segment: Segment
    section: TransactionSection
    is_exact: bool
    """False if an aborted transaction may begin before its first offset."""


class _OpenBefore(NamedTuple):
    """The transactions that are open where a segment begins."""

    open: Open
    is_complete: bool
    """Whether all of them are known."""


class SegmentTransactions:
    """Searches the transactions of logs; holds the sections that all logs share."""

    def __init__(self, indexes: SegmentIndexes, reader: "LogReader") -> None:
        self._indexes = indexes
        self._reader = reader
        self._sections: LoadingCache[str, TransactionSection] = LoadingCache(
            CACHE_BYTES_MAX, _cost_bytes
        )
        self._scanned: LoadingCache[str, ScannedSegment] = LoadingCache(
            CACHE_BYTES_MAX, attrgetter("size_bytes")
        )

    @property
    def size_bytes(self) -> int:
        return self._sections.size_bytes + self._scanned.size_bytes

    async def find_aborted(
        self, log: PartitionLog, from_offset: int, to_offset: int
    ) -> list[AbortedTransaction]:
        """The aborted transactions that overlap a range, ascending by their markers.

        All transactions that begin in the range must have ended.
        """
        if log.in_tail(from_offset):
            return list(log.transactions.aborted(from_offset, to_offset))
        return await self._reader.read_segments(
            log, partial(self._find_aborted, log, from_offset, to_offset)
        )

    async def _find_aborted(
        self, log: PartitionLog, from_offset: int, to_offset: int
    ) -> list[AbortedTransaction]:
        # While segments are being merged, two of them may list the same transaction.
        found = AbortedByMarker()
        async for segment, section, _ in self.walk(log, from_offset):
            for number in section.aborted.overlapping(from_offset, to_offset):
                found.add(section.aborted[number])
            first_open = section.first_open_offset
            is_closed = first_open is None or first_open >= to_offset
            if is_closed and segment.next_offset >= to_offset:
                return found.in_order()
        tail_offset = max(from_offset, log.tail.rolled_offset)
        for aborted in log.transactions.aborted(tail_offset, to_offset):
            found.add(aborted)
        return found.in_order()

    async def walk(self, log: PartitionLog, offset: int) -> AsyncIterator[SegmentState]:
        """What the segments say, from the one that holds an offset to the last one."""
        number = log.segments.find(offset)
        before: _OpenBefore | None = None
        while number < len(log.segments):
            segment = log.segments[number]
            section = await self._known(log, segment)
            if section is not None:
                before, is_exact = None, True
            else:
                before = before or await self._open_before(log, number)
                scanned = await self._scan(log, segment)
                section = scanned.section(before.open, is_complete=before.is_complete)
                is_exact = before.is_complete or scanned.is_self_contained
                before = _OpenBefore(section.open_by_producer, before.is_complete)
            yield SegmentState(segment, section, is_exact)
            if segment.next_offset >= log.segments.end_offset:
                return
            number = log.segments.find(segment.next_offset)

    async def _open_before(self, log: PartitionLog, number: int) -> "_OpenBefore":
        """The transactions that are open where a segment begins, by number."""
        if not number:
            return _OpenBefore({}, is_complete=True)
        previous = log.segments[number - 1]
        section = await self._known(log, previous)
        if section is None:
            return _OpenBefore({}, is_complete=False)
        if await self._reader.ends_at_next(log, previous):
            return _OpenBefore(section.open_by_producer, is_complete=True)
        before = await self._open_before(log, number - 1)
        scanned = await self._scan(log, previous)
        section = scanned.section(before.open, is_complete=before.is_complete)
        return _OpenBefore(section.open_by_producer, before.is_complete)

    async def _known(self, log: PartitionLog, segment: Segment) -> TransactionSection | None:
        """What the index of a segment says; None if it says nothing."""
        swap_count = log.swap_count
        sections = (await self._indexes.get(log, segment)).sections
        encoded = sections.get(TRANSACTIONS_SECTION)
        if encoded is None:
            return _NONE if PRODUCERS_SECTION in sections else None
        key = self._indexes.key(log, segment.base_offset)
        cached = self._sections.get(key)
        if cached is not None:
            return cached
        try:
            section = TransactionSection.decode(key, encoded)
        except DamagedObjectError as error:
            logger.warning("damaged index section ignored", key=key, reason=error.reason)
            return None
        # Otherwise the segment may have been replaced, and forgotten, while its index was read.
        if log.swap_count == swap_count and not log.closed:
            self._sections.put(key, section)
        return section

    async def _scan(self, log: PartitionLog, segment: Segment) -> ScannedSegment:
        """What the batches of a segment say, up to the next segment; they are read once."""
        key = self._indexes.key(log, segment.base_offset)
        return await self._scanned.load(key, lambda: self._read(log, segment))

    async def _read(self, log: PartitionLog, segment: Segment) -> ScannedSegment:
        scanned = ScannedSegment(segment.base_offset)
        position = segment_format.HEADER_BYTES
        while batches := await self._reader.batches(log, segment, position):
            own = [each for each in batches if each.base_offset < segment.next_offset]
            await asyncio.to_thread(scanned.add, own)
            if len(own) < len(batches):
                break
            position += sum(map(len, batches))
        return scanned

    def forget(self, *prefixes: str) -> None:
        """Drop what is known of segments whose index keys begin with a prefix."""
        self._sections.discard(lambda key: key.startswith(prefixes))
        self._scanned.discard(lambda key: key.startswith(prefixes))

    def clear(self) -> None:
        self._sections.clear()
        self._scanned.clear()


_first_offset = attrgetter("first_offset")


def _cost_bytes(section: TransactionSection) -> int:
    entries = len(section.open) + len(section.marked)
    return _SECTION_BYTES + _ENTRY_BYTES * entries + section.aborted.size_bytes
