"""The section of transactions of segments that replace others.

A new segment lists the aborted transactions of those that it replaces, in order, as far as their
markers are still in it: compaction drops a marker when nothing is left of its transaction, and
readers would wait for it. What is open at its end, and which producers have markers, is what the
last of them says. If that is not known of all of them, because an index was lost, the index of the
new segment says nothing about transactions: its batches do.
"""

import asyncio
from collections.abc import Mapping, MutableMapping, Sequence

from kafscale.errors import DamagedObjectError, DamagedRecordsError
from kafscale.records import BatchView, iterate, split
from kafscale.records.batch import CONTROL_BIT
from kafscale.storage.formats import segment as segment_format
from kafscale.storage.formats.index_section import PRODUCERS_SECTION, TRANSACTIONS_SECTION
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.segment_list import Segment
from kafscale.storage.log.state.transactions import (
    AbortedByMarker,
    TransactionSection,
    TransactionSpans,
)
from kafscale.storage.read.log_reader import LogReader

Sections = Mapping[int, TransactionSection]
"""The sections of old segments, by base offset, except those that are not known exactly."""


async def read_sections(
    reader: LogReader, log: PartitionLog, segments: Sequence[Segment]
) -> Sections:
    """Read what the segments say that are about to be replaced."""
    sections: dict[int, TransactionSection] = {}
    try:
        async for segment, section, is_exact in reader.transactions.walk(
            log, segments[0].base_offset
        ):
            if is_exact:
                sections[segment.base_offset] = section
            if segment == segments[-1]:
                break
    except (DamagedObjectError, DamagedRecordsError):
        pass  # A job may have recovered its records.
    return sections


async def update(
    index_sections: MutableMapping[bytes, bytes],
    replaced: Sequence[TransactionSection | None],
    data: memoryview,
) -> None:
    """Set the section in the index of a new segment, which has those of the last replaced one."""
    if PRODUCERS_SECTION not in index_sections:
        return  # The index says nothing; its segment's batches do.
    known = [section for section in replaced if section is not None]
    if len(known) < len(replaced):
        index_sections.pop(PRODUCERS_SECTION)
        index_sections.pop(TRANSACTIONS_SECTION, None)
        return
    # After a swap that was interrupted, two segments may list the same transaction.
    found = AbortedByMarker()
    for section in known:
        for each in section.aborted:
            found.add(each)
    aborted = TransactionSpans.of(found.in_order())
    if len(aborted):
        aborted = await asyncio.to_thread(_with_markers, aborted, data)
    merged = TransactionSection(known[-1].open, aborted, known[-1].marked)
    index_sections.pop(TRANSACTIONS_SECTION, None)
    if not merged.is_empty:
        index_sections[TRANSACTIONS_SECTION] = merged.encode()


def _with_markers(aborted: TransactionSpans, data: memoryview) -> TransactionSpans:
    """The transactions whose markers are in a segment; runs in a thread."""
    body = data[segment_format.HEADER_BYTES : len(data) - segment_format.FOOTER_BYTES]
    markers = {
        (batch.producer_id, _marker_offset(batch))
        for batch in split(body)
        if batch.attributes & CONTROL_BIT and batch.count
    }
    return TransactionSpans.of(
        each for each in aborted if (each.producer_id, each.last_offset) in markers
    )


def _marker_offset(batch: BatchView) -> int:
    """The offset of a marker; its batch may span those of dropped ones, even of other markers."""
    if not batch.last_offset_delta:
        return batch.base_offset
    return next(record.offset for record in iterate(batch))
