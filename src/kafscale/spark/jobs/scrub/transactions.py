"""The section about transactions of an index, rebuilt from batches, and compared with them. Pure.

What is open at the beginning of a segment is not in its batches: the section of the segment before
has it. Compaction may have removed batches of a transaction, and not its marker; so a section may
list more than the batches show, but never less.
"""

from collections.abc import Iterable, Sequence

from kafscale.records import BatchView
from kafscale.records.batch import CONTROL_BIT
from kafscale.records.control import ControlType, is_of_transaction, read_end_marker
from kafscale.spark.plan.transactions import OpenOffsets, events_of, replay
from kafscale.storage.formats.index import Index
from kafscale.storage.formats.index_section import PRODUCERS_SECTION, TRANSACTIONS_SECTION
from kafscale.storage.log.state.transaction_state import Transactions
from kafscale.storage.log.state.transactions import (
    AbortedTransaction,
    MarkedProducer,
    TransactionSection,
    section_of,
)


def known_section(key: str, entries: Index | None) -> TransactionSection | None:
    """Return what an index says about transactions; None if it says nothing."""
    if entries is None or not {PRODUCERS_SECTION, TRANSACTIONS_SECTION} & entries.sections.keys():
        return None
    return section_of(key, entries.sections)


def rebuild_section(before: TransactionSection, batches: Sequence[BatchView]) -> TransactionSection:
    """Return the section at the end of a segment, from that of the segment before."""
    transactions = Transactions.restore(before)
    for batch in batches:
        if not is_of_transaction(batch):
            continue
        header = batch.header()
        if not batch.attributes & CONTROL_BIT:
            if header.producer_id not in transactions.open:
                transactions.begin(
                    header.producer_id,
                    header.producer_epoch,
                    header.base_offset,
                    header.max_timestamp_ms,
                )
        elif (marker := read_end_marker(batch)) is not None:
            marked = MarkedProducer(
                header.producer_id,
                header.producer_epoch,
                marker.coordinator_epoch,
                header.max_timestamp_ms,
            )
            is_abort = marker.control_type is ControlType.ABORT
            transactions.end(marked, batch.last_offset, batch.next_offset, is_abort=is_abort)
    return transactions.section_at(batches[-1].next_offset)


def missing_aborted(
    section: TransactionSection, batches: Iterable[BatchView]
) -> AbortedTransaction | None:
    """Return an aborted transaction that a segment has, and the section of its index lacks."""
    opened: OpenOffsets = {}
    for found in replay(opened, events_of(batches, set()), 0):
        # Compaction may have given its first batch the offsets of dropped ones before it.
        numbers = section.aborted.overlapping(found.first_offset, found.last_offset + 1)
        if not any(section.aborted[each].producer_id == found.producer_id for each in numbers):
            return found
    return None
