"""Effects, deadlines and restoring of transactions, and the results of EndTxn in each state.

`tests/conformance/transaction_states` compares all replies and records with Kafka's; this is what
Kafka's classes do not show, and what has to be true where there is no Java.
"""

import pytest
from msgspec.structs import replace

from kafscale.errors import (
    ConcurrentTransactionsError,
    InvalidTransactionStateError,
    ProducerFencedError,
)
from kafscale.transactions.effects import (
    PartitionsAdded,
    PartitionsVerified,
    ProducerInitialized,
    Reply,
    Save,
    TransactionEnded,
    WriteMarkers,
)
from kafscale.transactions.events import (
    AddPartitions,
    EndTransaction,
    InitProducer,
    MarkersWritten,
    Tick,
    VerifyPartitions,
)
from kafscale.transactions.model import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    TransactionRecord,
    TransactionState,
    TransactionVersion,
)
from kafscale.transactions.transaction import Transaction
from kafscale.transactions.transitions import PREVIOUS_STATES
from services.for_each import for_each

PRODUCER, FRESH = 7, 8
EPOCH = 4
TIMEOUT_MS = 100
NOW_MS = 1_000
PARTITIONS = frozenset({("orders", 0), ("returns", 1)})
S = TransactionState
V0, V1, V2 = TransactionVersion


def transaction(state=S.EMPTY, **fields) -> Transaction:
    has_partitions = state in {S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT}
    record = TransactionRecord(
        transactional_id="billing",
        producer_id=PRODUCER,
        previous_producer_id=PRODUCER,
        epoch=EPOCH,
        last_epoch=EPOCH - 1,
        timeout_ms=TIMEOUT_MS,
        state=state,
        partitions=PARTITIONS if has_partitions else frozenset(),
        started_ms=NO_TIME if state is S.EMPTY else NOW_MS,
        updated_ms=NOW_MS,
        version=V2,
    )
    return Transaction.restore(replace(record, **fields))


def init(**fields) -> InitProducer:
    return InitProducer(reply_token=1, timeout_ms=TIMEOUT_MS, fresh_producer_id=FRESH, **fields)


def add(*partitions, epoch=EPOCH) -> AddPartitions:
    return AddPartitions(
        reply_token=2,
        producer_id=PRODUCER,
        epoch=epoch,
        partitions=frozenset(partitions),
        version=V2,
    )


def end(*, is_commit=True, epoch=EPOCH, version=V2) -> EndTransaction:
    return EndTransaction(
        reply_token=3,
        producer_id=PRODUCER,
        epoch=epoch,
        is_commit=is_commit,
        version=version,
        fresh_producer_id=FRESH,
    )


def reply_of(effects):
    (reply,) = [effect for effect in effects if isinstance(effect, Reply)]
    return reply.response


# --- effects -------------------------------------------------------------------------------------


def test_life_of_a_transactional_id():
    """Every reply that depends on a change waits for it; only completion is saved lazily."""
    t = Transaction.new("billing", NOW_MS)
    assert t.needs_producer_id
    assert t.handle(init(), NOW_MS) == [
        Save(),
        Reply(1, ProducerInitialized(producer_id=FRESH, epoch=0), is_durable=True),
    ]
    producer = {"producer_id": FRESH, "epoch": 0}
    for added in [{("orders", 0)}, {("returns", 1)}]:
        event = AddPartitions(reply_token=2, **producer, partitions=frozenset(added), version=V2)
        assert t.handle(event, NOW_MS + 1) == [Save(), Reply(2, PartitionsAdded(), is_durable=True)]
    # Nothing changes, but the write that added the partition may be in progress.
    assert t.handle(event, NOW_MS + 1) == [Reply(2, PartitionsAdded(), is_durable=True)]
    verify = VerifyPartitions(reply_token=4, **producer, partitions=PARTITIONS)
    assert t.handle(verify, NOW_MS + 1) == [
        Reply(4, PartitionsVerified(dict.fromkeys(PARTITIONS)), is_durable=True)
    ]
    ended = EndTransaction(reply_token=3, **producer, is_commit=True, version=V2)
    assert t.handle(ended, NOW_MS + 2) == [
        Save(),
        Reply(3, TransactionEnded(producer_id=FRESH, epoch=1), is_durable=True),
        WriteMarkers(producer_id=FRESH, epoch=1, is_commit=True, partitions=PARTITIONS),
    ]
    bumped = {"producer_id": FRESH, "epoch": 1}
    first = MarkersWritten(**bumped, partitions=frozenset({("orders", 0)}))
    assert t.handle(first, NOW_MS + 3) == []
    assert t.record().partitions == {("returns", 1)}
    assert t.handle(MarkersWritten(**bumped, partitions=PARTITIONS), NOW_MS + 3) == [
        Save(is_lazy=True)
    ]
    assert t.state is S.COMPLETE_COMMIT
    assert t.record().partitions == frozenset()


def test_markers_of_an_earlier_outcome_are_ignored():
    t = transaction(S.PREPARE_COMMIT)
    for producer_id, epoch in [(PRODUCER, EPOCH - 1), (FRESH, EPOCH)]:
        written = MarkersWritten(producer_id=producer_id, epoch=epoch, partitions=PARTITIONS)
        assert t.handle(written, NOW_MS) == []
    assert t.record().partitions == PARTITIONS


def test_end_without_partitions_is_complete_at_once():
    """The abort of a client that does not know whether a partition was added (KIP-890)."""
    t = transaction(S.COMPLETE_COMMIT)
    assert t.handle(end(is_commit=False), NOW_MS + 1) == [
        Save(),
        Reply(3, TransactionEnded(producer_id=PRODUCER, epoch=EPOCH + 1), is_durable=True),
    ]
    assert t.state is S.COMPLETE_ABORT


def test_new_producer_fences_and_aborts():
    t = transaction(S.ONGOING)
    save, reply, markers = t.handle(init(), NOW_MS + 1)
    assert save == Save()
    assert isinstance(reply.response, ConcurrentTransactionsError)
    assert reply.is_durable
    assert markers == WriteMarkers(
        producer_id=PRODUCER, epoch=EPOCH + 1, is_commit=False, partitions=PARTITIONS
    )
    assert isinstance(reply_of(t.handle(end(), NOW_MS + 1)), ConcurrentTransactionsError)
    t.handle(
        MarkersWritten(producer_id=PRODUCER, epoch=EPOCH + 1, partitions=PARTITIONS), NOW_MS + 2
    )
    initialized = reply_of(t.handle(init(), NOW_MS + 3))
    assert initialized == ProducerInitialized(producer_id=PRODUCER, epoch=EPOCH + 2)
    assert isinstance(reply_of(t.handle(add(("orders", 0)), NOW_MS + 3)), ProducerFencedError)


def test_rejections_need_no_write():
    t = transaction(S.ONGOING)
    before = t.record()
    (reply,) = t.handle(end(epoch=EPOCH - 1), NOW_MS + 1)
    assert isinstance(reply.response, ProducerFencedError)
    assert not reply.is_durable
    assert t.record() is before


# --- time ----------------------------------------------------------------------------------------


def test_only_an_ongoing_transaction_times_out():
    t = transaction(S.ONGOING, started_ms=NOW_MS)
    assert t.deadline_ms == NOW_MS + TIMEOUT_MS
    assert t.handle(Tick(), NOW_MS + TIMEOUT_MS - 1) == []
    assert t.handle(Tick(), NOW_MS + TIMEOUT_MS) == [
        Save(),
        WriteMarkers(producer_id=PRODUCER, epoch=EPOCH + 1, is_commit=False, partitions=PARTITIONS),
    ]
    assert t.deadline_ms is None
    assert t.handle(Tick(), NOW_MS + 10 * TIMEOUT_MS) == []


def test_more_partitions_do_not_extend_the_deadline():
    t = transaction(S.ONGOING, started_ms=NOW_MS)
    t.handle(add(("orders", 5)), NOW_MS + 50)
    assert t.deadline_ms == NOW_MS + TIMEOUT_MS


@for_each(TransactionState)
def test_idle_transactional_ids_expire(state):
    t = transaction(state)
    is_idle = state in {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}
    assert not t.is_expired(NOW_MS + 59, expiration_ms=60)
    assert t.is_expired(NOW_MS + 60, expiration_ms=60) == is_idle
    if is_idle:
        t.expire()
        for event in [init(), add(("orders", 0)), end()]:
            assert isinstance(reply_of(t.handle(event, NOW_MS + 60)), ConcurrentTransactionsError)


# --- restoring -----------------------------------------------------------------------------------


@for_each([S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_restored_outcome_is_written_again(state):
    is_commit = state is S.PREPARE_COMMIT
    assert transaction(state).resume(NOW_MS) == [
        WriteMarkers(producer_id=PRODUCER, epoch=EPOCH, is_commit=is_commit, partitions=PARTITIONS)
    ]
    t = transaction(state, partitions=frozenset())
    assert t.resume(NOW_MS) == [Save(is_lazy=True)]
    assert t.state is (S.COMPLETE_COMMIT if is_commit else S.COMPLETE_ABORT)


@for_each([S.EMPTY, S.ONGOING, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_other_restored_states_wait_for_events(state):
    assert transaction(state).resume(NOW_MS) == []


# --- epochs --------------------------------------------------------------------------------------


def test_exhausted_producer_id_is_changed_by_the_end():
    t = transaction(S.ONGOING, epoch=EPOCH_MAX - 1)
    assert t.needs_producer_id
    _save, reply, markers = t.handle(end(epoch=EPOCH_MAX - 1), NOW_MS)
    next_producer = TransactionEnded(producer_id=FRESH, epoch=0)
    assert reply.response == next_producer
    assert (markers.producer_id, markers.epoch) == (PRODUCER, EPOCH_MAX)
    # A client that continues at once, as the new producer, has to wait for completion.
    begun = AddPartitions(
        reply_token=2, producer_id=FRESH, epoch=0, partitions=PARTITIONS, version=V2
    )
    assert isinstance(reply_of(t.handle(begun, NOW_MS)), ConcurrentTransactionsError)
    # So does a coordinator that restores the transaction: it completes with the same producer.
    t = Transaction.restore(t.record())
    t.resume(NOW_MS)
    t.handle(MarkersWritten(producer_id=PRODUCER, epoch=EPOCH_MAX, partitions=PARTITIONS), NOW_MS)
    assert (t.record().producer_id, t.record().epoch) == (FRESH, 0)
    assert reply_of(t.handle(end(epoch=EPOCH_MAX - 1), NOW_MS)) == next_producer
    assert reply_of(t.handle(begun, NOW_MS)) == PartitionsAdded()


@pytest.mark.parametrize("expected", [None, EPOCH_MAX - 1])
def test_exhausted_producer_id_is_changed_by_the_next_producer(expected):
    """After a fence too, whose epoch no client gets."""
    for epoch, last_epoch in [(EPOCH_MAX - 1, NO_EPOCH), (EPOCH_MAX, EPOCH_MAX - 1)]:
        t = transaction(S.COMPLETE_ABORT, epoch=epoch, last_epoch=last_epoch)
        event = init() if expected is None else init(producer_id=PRODUCER, epoch=expected)
        initialized = ProducerInitialized(producer_id=FRESH, epoch=0)
        assert reply_of(t.handle(event, NOW_MS)) == initialized
        if expected is not None:  # Repeated, because the response was lost.
            assert reply_of(t.handle(event, NOW_MS)) == initialized


def test_epoch_that_only_fences_writes_to_no_partition():
    """The marker of the outcome could not have a higher one, and would not end the transaction."""
    t = transaction(S.COMPLETE_ABORT, epoch=EPOCH_MAX, last_epoch=EPOCH_MAX - 1)
    assert isinstance(
        reply_of(t.handle(add(("orders", 0), epoch=EPOCH_MAX), NOW_MS)), ProducerFencedError
    )
    t = transaction(S.ONGOING, epoch=EPOCH_MAX)
    verify = VerifyPartitions(
        reply_token=4, producer_id=PRODUCER, epoch=EPOCH_MAX, partitions=PARTITIONS
    )
    verified = reply_of(t.handle(verify, NOW_MS))
    assert [type(error) for error in verified.errors.values()] == [ProducerFencedError] * 2


def test_repeated_init_of_a_continuing_producer_has_the_same_result():
    """KIP-360: and a new producer ends that."""
    t = transaction()
    again = init(producer_id=PRODUCER, epoch=EPOCH)
    for _ in range(2):
        initialized = reply_of(t.handle(again, NOW_MS))
        assert initialized == ProducerInitialized(producer_id=PRODUCER, epoch=EPOCH + 1)
    assert reply_of(t.handle(init(), NOW_MS)).epoch == EPOCH + 2
    assert isinstance(reply_of(t.handle(again, NOW_MS)), ProducerFencedError)


# --- EndTxn --------------------------------------------------------------------------------------

FENCED, INVALID = ProducerFencedError, InvalidTransactionStateError
CONCURRENT = ConcurrentTransactionsError
ENDS = {
    # state: abort repeated, abort, commit repeated, commit; a state is what it leads to.
    (V2, S.EMPTY): (FENCED, S.COMPLETE_ABORT, FENCED, INVALID),
    (V2, S.ONGOING): (FENCED, S.PREPARE_ABORT, FENCED, S.PREPARE_COMMIT),
    (V2, S.PREPARE_ABORT): (CONCURRENT, CONCURRENT, CONCURRENT, CONCURRENT),
    (V2, S.PREPARE_COMMIT): (CONCURRENT, CONCURRENT, CONCURRENT, CONCURRENT),
    (V2, S.COMPLETE_ABORT): (S.COMPLETE_ABORT, S.COMPLETE_ABORT, INVALID, INVALID),
    (V2, S.COMPLETE_COMMIT): (INVALID, S.COMPLETE_ABORT, S.COMPLETE_COMMIT, INVALID),
    # Before version 2, a repeated request has the current epoch.
    (V0, S.EMPTY): (FENCED, INVALID, FENCED, INVALID),
    (V0, S.ONGOING): (FENCED, S.PREPARE_ABORT, FENCED, S.PREPARE_COMMIT),
    (V0, S.PREPARE_ABORT): (FENCED, CONCURRENT, FENCED, CONCURRENT),
    (V0, S.PREPARE_COMMIT): (FENCED, CONCURRENT, FENCED, CONCURRENT),
    (V0, S.COMPLETE_ABORT): (FENCED, S.COMPLETE_ABORT, FENCED, INVALID),
    (V0, S.COMPLETE_COMMIT): (FENCED, INVALID, FENCED, S.COMPLETE_COMMIT),
}
REQUESTS = [(False, EPOCH - 1), (False, EPOCH), (True, EPOCH - 1), (True, EPOCH)]


@for_each(
    [
        (version, state, *request, result)
        for (version, state), results in ENDS.items()
        for request, result in zip(REQUESTS, results, strict=True)
    ]
)
def test_end_in_each_state(case):
    version, state, is_commit, epoch, result = case
    t = transaction(state)
    response = reply_of(t.handle(end(is_commit=is_commit, epoch=epoch, version=version), NOW_MS))
    if isinstance(result, type):
        assert type(response) is result
        assert t.state is state
        return
    assert t.state is result
    is_new = epoch == EPOCH and (version is V2 or state is S.ONGOING)
    assert t.record().epoch == EPOCH + (is_new and version is V2)
    assert response == (
        TransactionEnded(producer_id=PRODUCER, epoch=t.record().epoch)
        if version is V2
        else TransactionEnded(producer_id=NO_PRODUCER_ID, epoch=NO_EPOCH)
    )


def test_every_state_has_its_previous_states():
    assert set(PREVIOUS_STATES) == set(TransactionState)
    assert set().union(*PREVIOUS_STATES.values()) == set(TransactionState) - {S.DEAD}
