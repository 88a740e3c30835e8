"""`Transaction`: a transactional id with its producer and its newest transaction.

Events in, effects out, with the results of Apache Kafka 4.1's transaction coordinator. Unlike there
the state changes at once, while its record is being written, and replies wait for the write. So no
request has to be repeated only because a write is in progress.

Invariants: a rejected event changes nothing. The epoch of a producer id never decreases. Actions
are in `producer`, `partitions` and `outcome`, which have their own invariants.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Self

from kafscale.errors import TransactionError
from kafscale.transactions.effects import Effect
from kafscale.transactions.events import (
    AddPartitions,
    EndTransaction,
    Event,
    InitProducer,
    MarkersWritten,
    Tick,
    VerifyPartitions,
)
from kafscale.transactions.model import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    TransactionRecord,
    TransactionState,
)
from kafscale.transactions.outcome import end_transaction, fence, markers_written, write_markers
from kafscale.transactions.partitions import add_partitions, verify_partitions
from kafscale.transactions.producer import init_producer
from kafscale.transactions.state import State
from kafscale.transactions.transitions import DEAD, EMPTY, ONGOING, is_valid


class Transaction:
    __slots__ = ("_record",)

    def __init__(self, record: TransactionRecord) -> None:
        self._record = record

    @classmethod
    def new(cls, transactional_id: str, now_ms: int) -> Self:
        """A transactional id without a producer: its first event has to be `InitProducer`."""
        return cls(
            TransactionRecord(
                transactional_id=transactional_id,
                producer_id=NO_PRODUCER_ID,
                epoch=NO_EPOCH,
                timeout_ms=0,
                state=EMPTY,
                updated_ms=now_ms,
            )
        )

    @classmethod
    def restore(cls, record: TransactionRecord) -> Self:
        """The recorded transaction; `resume` has to follow."""
        return cls(record)

    # --- state ----------------------------------------------------------------------------------

    def record(self) -> TransactionRecord:
        return self._record

    @property
    def state(self) -> TransactionState:
        return self._record.state

    @property
    def deadline_ms(self) -> int | None:
        """When a `Tick` aborts the transaction; None unless it is ongoing."""
        record = self._record
        return record.started_ms + record.timeout_ms if record.state is ONGOING else None

    @property
    def needs_producer_id(self) -> bool:
        """Whether `InitProducer` and `EndTransaction` need a fresh producer id at present."""
        return self._record.epoch == NO_EPOCH or State(self._record).is_exhausted

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Whether it was idle for so long that the transactional id may be deleted."""
        record = self._record
        return is_valid(record.state, DEAD) and record.updated_ms + expiration_ms <= now_ms

    def expire(self) -> None:
        """The caller deletes the record; until that is done, all requests have to be repeated."""
        state = State(self._record)
        state.change(DEAD)
        self._record = state.record

    # --- events ---------------------------------------------------------------------------------

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle an event atomically."""
        state = State(self._record)
        try:
            _ACTIONS[type(event)](state, event, now_ms)
        except TransactionError as error:
            assert not isinstance(event, MarkersWritten | Tick), event
            state.reply(event.reply_token, error, is_durable=False)
        self._record = state.record
        return state.effects

    def resume(self, now_ms: int) -> list[Effect]:
        """Continue after it was restored: write the markers of a prepared outcome again."""
        state = State(self._record)
        if state.record.state.is_prepared:
            write_markers(state, now_ms)
            if state.record.state.is_complete:
                state.save(is_lazy=True)
        self._record = state.record
        return state.effects


def _tick(state: State, _event: Tick, now_ms: int) -> None:
    record = state.record
    if record.state is ONGOING and record.started_ms + record.timeout_ms <= now_ms:
        fence(state, now_ms)
        write_markers(state, now_ms)


_ACTIONS: Final[Mapping[type, Callable[[State, Any, int], None]]] = {
    InitProducer: init_producer,
    AddPartitions: add_partitions,
    VerifyPartitions: verify_partitions,
    EndTransaction: end_transaction,
    MarkersWritten: markers_written,
    Tick: _tick,
}
