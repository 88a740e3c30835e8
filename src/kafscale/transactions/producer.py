"""InitProducerId: a producer takes over the transactional id, and fences the one before.

Invariant: no two producers get the same producer id and epoch; a repeated request of one producer
gets the same again (KIP-360).
"""

from kafscale.errors import ConcurrentTransactionsError, ProducerFencedError
from kafscale.transactions.effects import ProducerInitialized
from kafscale.transactions.events import InitProducer
from kafscale.transactions.model import (
    NO_EPOCH,
    NO_PARTITIONS,
    NO_PRODUCER_ID,
    NO_TIME,
    TransactionRecord,
)
from kafscale.transactions.outcome import fence, write_markers
from kafscale.transactions.state import CLIENT_EPOCH_MAX, State, checked_fresh
from kafscale.transactions.transitions import EMPTY, ONGOING


def init_producer(state: State, event: InitProducer, now_ms: int) -> None:
    state.check_undecided()
    if not _is_valid_producer_id(state.record, event):
        raise ProducerFencedError
    if state.record.state is ONGOING:
        # The client repeats the request until the transaction is aborted, and gets another epoch
        # then: the one of the abort only fences the producer before.
        fence(state, now_ms)
        state.reply(event.reply_token, ConcurrentTransactionsError())
        write_markers(state, now_ms)
        return
    producer_id, epoch, last_epoch = _next_producer(state, event)
    state.change(
        EMPTY,
        producer_id=producer_id,
        epoch=epoch,
        last_epoch=last_epoch,
        timeout_ms=event.timeout_ms,
        partitions=NO_PARTITIONS,
        started_ms=NO_TIME,
        updated_ms=now_ms,
    )
    state.save()
    state.reply(event.reply_token, ProducerInitialized(producer_id=producer_id, epoch=epoch))


def _is_valid_producer_id(record: TransactionRecord, event: InitProducer) -> bool:
    """Whether a producer that continues may be the present one.

    The previous producer id with an exhausted epoch may be of a repeated request, whose response
    was lost, and which has changed the producer id.
    """
    return (
        record.epoch == NO_EPOCH
        or event.producer_id in {NO_PRODUCER_ID, record.producer_id}
        or (event.producer_id == record.previous_producer_id and event.epoch >= CLIENT_EPOCH_MAX)
    )


def _next_producer(state: State, event: InitProducer) -> tuple[int, int, int]:
    """The producer id, epoch and last epoch after the event."""
    record = state.record
    if record.epoch == NO_EPOCH:
        return checked_fresh(event.fresh_producer_id), 0, NO_EPOCH
    if event.producer_id == NO_PRODUCER_ID:
        last_epoch = NO_EPOCH
    elif event.epoch == record.epoch:
        last_epoch = record.epoch
    elif event.epoch == record.last_epoch:
        if record.epoch <= CLIENT_EPOCH_MAX:
            return record.producer_id, record.epoch, record.last_epoch
        last_epoch = record.last_epoch  # It has the epoch that only fences: continue as another.
    else:
        raise ProducerFencedError
    if state.is_exhausted:
        return checked_fresh(event.fresh_producer_id), 0, last_epoch
    return record.producer_id, record.epoch + 1, last_epoch
