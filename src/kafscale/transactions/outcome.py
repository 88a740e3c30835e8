"""EndTxn: the outcome of a transaction is decided, written to its partitions, and completed.

Invariants: a decided outcome does not change until every partition has its marker. It is saved, not
lazily, before the markers. Completion is saved lazily: a transaction that is restored without it
writes its markers again, and completes with the same producer id and epoch.

With `transaction.version` 2, every end bumps the epoch, so that a late batch of the transaction is
fenced by its marker (KIP-890). The results, where a repeated request has the epoch before the bump:

|                | abort, repeated | abort  | commit, repeated | commit  |
|----------------|-----------------|--------|------------------|---------|
| Empty          | fenced          | aborts | fenced           | invalid |
| Ongoing        | fenced          | aborts | fenced           | commits |
| CompleteAbort  | as before       | aborts | invalid          | invalid |
| CompleteCommit | invalid         | aborts | as before        | invalid |

Before version 2, a request is repeated with the same epoch: once complete, the same outcome has the
same result, and everything else but the end of an Ongoing transaction is invalid. While an outcome
is prepared, all requests have to be repeated: a client that has the reply to EndTxn may already
continue, with the next epoch or producer id.
"""

from typing import Final

import msgspec

from kafscale.errors import (
    InvalidProducerIdMappingError,
    InvalidTransactionStateError,
    ProducerFencedError,
)
from kafscale.transactions.effects import TransactionEnded, WriteMarkers
from kafscale.transactions.events import EndTransaction, MarkersWritten
from kafscale.transactions.model import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_PARTITIONS,
    NO_PRODUCER_ID,
    TransactionRecord,
    TransactionVersion,
)
from kafscale.transactions.state import CLIENT_EPOCH_MAX, State, checked_fresh
from kafscale.transactions.transitions import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARE_EPOCH_FENCE,
)

SERVER_VERSION: Final = TransactionVersion.V2
"""The version by which the coordinator itself aborts a transaction."""


def end_transaction(state: State, event: EndTransaction, now_ms: int) -> None:
    bumps_epoch = event.version.bumps_epoch
    if bumps_epoch:
        state.check_undecided()
        is_repeated = _check_repeated(state.record, event)
    else:
        state.check_producer(event)
        state.check_undecided()
        is_repeated = state.record.state.is_complete
    if is_repeated:
        _require(event.is_commit == (state.record.state is COMPLETE_COMMIT))
        _reply_ended(state, event)
        return
    is_empty_abort = bumps_epoch and not event.is_commit
    _require(state.record.state is ONGOING or is_empty_abort)
    next_producer_id = NO_PRODUCER_ID
    if bumps_epoch and state.is_exhausted:
        next_producer_id = checked_fresh(event.fresh_producer_id)
    version = event.version if bumps_epoch else TransactionVersion.V0
    _decide(
        state, now_ms, is_commit=event.is_commit, version=version, next_producer_id=next_producer_id
    )
    _reply_ended(state, event)
    write_markers(state, now_ms)


def _check_repeated(record: TransactionRecord, event: EndTransaction) -> bool:
    """Whether the event has been handled already; raises if it is by another producer.

    Its handling has bumped the epoch, or has changed the producer id instead. So the same event
    with the current epoch is a new one.
    """
    has_changed_id = (
        event.producer_id == record.previous_producer_id
        and event.epoch == CLIENT_EPOCH_MAX
        and record.epoch == 0
    )
    if event.producer_id != record.producer_id and not has_changed_id:
        raise InvalidProducerIdMappingError
    has_bumped_epoch = event.epoch + 1 == record.epoch
    if record.state.is_complete and (has_bumped_epoch or has_changed_id):
        return True
    if event.epoch != record.epoch:
        raise ProducerFencedError
    return False


def _require(is_valid: bool) -> None:
    if not is_valid:
        raise InvalidTransactionStateError


def _reply_ended(state: State, event: EndTransaction) -> None:
    """Classic clients keep their producer; the others get it as it is after completion."""
    producer_id, epoch = NO_PRODUCER_ID, NO_EPOCH
    if event.version.bumps_epoch:
        producer_id, epoch = _producer_after(state.record)
    state.reply(event.reply_token, TransactionEnded(producer_id=producer_id, epoch=epoch))


def fence(state: State, now_ms: int) -> None:
    """Abort an ongoing transaction, and fence its producer; `write_markers` has to follow."""
    state.change(PREPARE_EPOCH_FENCE)
    _decide(state, now_ms, is_commit=False, version=SERVER_VERSION)


def _decide(
    state: State,
    now_ms: int,
    *,
    is_commit: bool,
    version: TransactionVersion,
    next_producer_id: int = NO_PRODUCER_ID,
) -> None:
    """Prepare and save an outcome; `write_markers` has to follow.

    An exhausted producer id without a next one gets the epoch that only fences; the next
    InitProducerId changes the producer id.
    """
    record = state.record
    epoch, last_epoch = record.epoch, record.last_epoch
    if version.bumps_epoch:
        epoch, last_epoch = min(record.epoch + 1, EPOCH_MAX), record.epoch
    is_begun = record.state in {ONGOING, PREPARE_EPOCH_FENCE}
    state.change(
        PREPARE_COMMIT if is_commit else PREPARE_ABORT,
        next_producer_id=next_producer_id,
        epoch=epoch,
        last_epoch=last_epoch,
        started_ms=record.started_ms if is_begun else now_ms,
        updated_ms=now_ms,
        version=version,
    )
    state.save()


def write_markers(state: State, now_ms: int) -> None:
    """Write the markers of a prepared outcome; without partitions it is complete."""
    record = state.record
    if not record.partitions:
        _complete(state, now_ms)
        return
    state.add_effect(
        WriteMarkers(
            producer_id=record.producer_id,
            epoch=record.epoch,
            is_commit=record.state is PREPARE_COMMIT,
            partitions=record.partitions,
        )
    )


def markers_written(state: State, event: MarkersWritten, now_ms: int) -> None:
    record = state.record
    is_current = (event.producer_id, event.epoch) == (record.producer_id, record.epoch)
    if not record.state.is_prepared or not is_current:
        return  # Of an outcome that is complete: a marker may be written more than once.
    state.record = msgspec.structs.replace(record, partitions=record.partitions - event.partitions)
    if not state.record.partitions:
        _complete(state, now_ms)
        state.save(is_lazy=True)


def _complete(state: State, now_ms: int) -> None:
    record = state.record
    producer_id, epoch = _producer_after(record)
    state.change(
        COMPLETE_COMMIT if record.state is PREPARE_COMMIT else COMPLETE_ABORT,
        producer_id=producer_id,
        next_producer_id=NO_PRODUCER_ID,
        epoch=epoch,
        partitions=NO_PARTITIONS,
        updated_ms=now_ms,
    )


def _producer_after(record: TransactionRecord) -> tuple[int, int]:
    """The producer id and epoch after completion."""
    if record.next_producer_id != NO_PRODUCER_ID:
        return record.next_producer_id, 0
    return record.producer_id, record.epoch
