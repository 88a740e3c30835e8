"""Which transactions of a partition are open, and which were aborted.

The section `TXNS` of a segment's index says it for the segment (see
`storage.log.state.transactions`). What follows the segments is found by `replay` from the batches
of the WAL, of which a few events are kept. Pure.

Invariant: `replay` of the events of all extents in order gives what the broker knows at their end:
a transaction begins with the first transactional batch of its producer, and ends with the next
marker of that producer. Its interval holds no batch of another transaction of the same producer.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kafscale.records import BatchView
from kafscale.records.batch import CONTROL_BIT
from kafscale.records.control import ControlType, is_of_transaction, read_end_marker
from kafscale.storage.log.state.transactions import AbortedTransaction, TransactionSpans

OpenOffsets = dict[int, int]
"""The first offset of the open transaction of each producer."""


class TransactionEvent(NamedTuple):
    """The beginning of a transaction, or its end."""

    offset: int
    producer_id: int
    control_type: ControlType | None = None
    """Of the marker; None for a beginning."""


def events_of(batches: Iterable[BatchView], begun: set[int]) -> Iterator[TransactionEvent]:
    """Yield the events of consecutive batches.

    Of the batches of a producer without a marker in between, only the first is an event. `begun`
    has the producers of which there was one, to continue with further batches.
    """
    for batch in batches:
        if not is_of_transaction(batch):
            continue
        producer_id = batch.producer_id
        if not batch.attributes & CONTROL_BIT:
            if producer_id not in begun:
                begun.add(producer_id)
                yield TransactionEvent(batch.base_offset, producer_id)
        elif (marker := read_end_marker(batch)) is not None:
            begun.discard(producer_id)
            # Compaction may have given the batch offsets before and after its record.
            yield TransactionEvent(batch.last_offset, producer_id, marker.control_type)


def replay(
    opened: OpenOffsets, events: Iterable[TransactionEvent], start_offset: int
) -> list[AbortedTransaction]:
    """Update what is open by the events from an offset on; return what they abort.

    Earlier events are of batches that segments have. What they leave open is open at that offset,
    even if it is not in `opened`: compaction may have dropped these batches, and an index be lost.
    """
    aborted = []
    begun: set[int] = set()
    is_before = True
    for event in events:
        if is_before and event.offset < start_offset:
            if event.control_type is None:
                begun.add(event.producer_id)
            else:
                begun.discard(event.producer_id)
            continue
        if is_before:
            is_before = False
            _open(opened, begun, start_offset)
        if event.control_type is None:
            opened.setdefault(event.producer_id, event.offset)
            continue
        first_offset = opened.pop(event.producer_id, None)
        if first_offset is not None and event.control_type is ControlType.ABORT:
            aborted.append(AbortedTransaction(event.producer_id, first_offset, event.offset))
    if is_before:
        _open(opened, begun, start_offset)
    return aborted


def _open(opened: OpenOffsets, producer_ids: Iterable[int], offset: int) -> None:
    for producer_id in producer_ids:
        opened.setdefault(producer_id, offset)


def overlapping(spans: TransactionSpans, from_offset: int, to_offset: int) -> TransactionSpans:
    """Return those that begin before `to_offset` and end at `from_offset` or later."""
    return TransactionSpans.of(
        spans[number] for number in spans.overlapping(from_offset, to_offset)
    )
