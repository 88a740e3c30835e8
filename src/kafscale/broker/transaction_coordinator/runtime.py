"""The runtime of one transactional id: its state machine, its record, its replies and its timer.

Invariants: an event is handled atomically, and its effects are executed in order. Markers are sent,
and durable replies too, once the decision is in the store. A lazy save waits for the next save, or
for `LAZY_SECONDS`: what it would save is repeated after a crash. The timer may fire early, and
late only if the wall clock was set.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from kafscale.broker.shards.pending_replies import PendingReplies
from kafscale.broker.shards.shard_session import RecordNotSavedError, ShardSession
from kafscale.broker.transaction_coordinator.marker_sender import MarkerSender
from kafscale.errors import KafscaleError, TransactionAbortableError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.transaction_codec import encode_transaction
from kafscale.metadata.store.base import Delete, Operation, Put
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.counters import TransactionCounters
from kafscale.text.topic_partition import TopicPartition
from kafscale.transactions.effects import Effect, Reply, Save, WriteMarkers
from kafscale.transactions.events import Event, MarkersWritten, Tick
from kafscale.transactions.model import TransactionState
from kafscale.transactions.transaction import Transaction

logger = get_logger(__name__)

LAZY_SECONDS: Final = 1.0
"""How long the record of a complete transaction may wait for the next transaction."""
TIMER_MS_MIN: Final = 10
"""A clock that was set back must not make the timer fire in a busy loop."""
TIMER_MS_MAX: Final = 60_000
"""A clock that is set forward makes a deadline due earlier than the timer was set for."""


class RuntimeContext(NamedTuple):
    """What all runtimes of a shard share: an id that is not used has nothing but its record."""

    session: ShardSession
    """All writes carry its ownership guard."""
    replies: PendingReplies
    markers: MarkerSender
    counters: TransactionCounters
    clock: Callable[[], int]
    states: Counter[TransactionState]
    """How many transactional ids of the shard are in each state."""


class TransactionRuntime:
    """Runs one transactional id."""

    __slots__ = ("_completion", "_context", "_is_deleted", "_lazy_timer", "_timer", "transaction")

    def __init__(self, transaction: Transaction, context: RuntimeContext) -> None:
        self.transaction = transaction
        self._context = context
        self._timer: asyncio.TimerHandle | None = None
        self._lazy_timer: asyncio.TimerHandle | None = None
        self._completion: asyncio.Future[None] | None = None
        self._is_deleted = False

    @property
    def session(self) -> ShardSession:
        return self._context.session

    @property
    def name(self) -> str:
        """The transactional id."""
        return self.transaction.record().transactional_id

    @property
    def _key(self) -> str:
        return keys.transactional_id(self.name)

    @property
    def completion(self) -> "asyncio.Future[None] | None":
        """Resolved when all partitions have their markers; None if no outcome is being written."""
        if self._completion is None and self.transaction.state.is_prepared:
            self._completion = asyncio.get_running_loop().create_future()
        return self._completion

    def handle(self, event: Event) -> None:
        """Pass an event to the transaction, and execute the effects."""
        before = self.transaction.state
        self.execute(self.transaction.handle(event, self._context.clock()))
        self._count(before, event)
        self._schedule_timer()

    def resume(self) -> None:
        """Continue after it was loaded: write markers of a decided outcome again."""
        before = self.transaction.state
        self.execute(self.transaction.resume(self._context.clock()))
        self._count_state(before)
        self._schedule_timer()

    def execute(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply(reply_token, response, is_durable=False):
                    self._context.replies.resolve(reply_token, response)
                case Reply(reply_token, response):
                    self.session.when_durable(
                        partial(self._context.replies.resolve, reply_token, response),
                        on_lost=partial(self._refuse, reply_token),
                        key=self._key,
                        is_waiting=partial(self._context.replies.is_waiting, reply_token),
                    )
                case Save(is_lazy=True):
                    self._save_later()
                case Save():
                    self._save()
                case WriteMarkers():
                    bumps_epoch = self.transaction.record().version.bumps_epoch
                    self.session.when_durable(
                        partial(self._send_markers, effect, bumps_epoch=bumps_epoch), key=self._key
                    )

    def _refuse(self, reply_token: int, error: KafscaleError) -> None:
        """Answer that the change of a request is not in the store."""
        if isinstance(error, RecordNotSavedError):
            error = TransactionAbortableError(str(error))
        self._context.replies.resolve(reply_token, error)

    def delete(self) -> None:
        """Delete the record from the store; no event may follow."""
        before = self.transaction.state
        self.transaction.expire()
        self._count_state(before)
        self.close()
        self._is_deleted = True
        self._save()

    def close(self) -> None:
        """Stop the timers; a record that waits to be saved is written, if that is still allowed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._lazy_timer is not None:
            self._save()
        self._complete()

    def _complete(self) -> None:
        """Wake what waits for the end of the transaction, or for another coordinator."""
        completion, self._completion = self._completion, None
        if completion is not None:
            completion.set_result(None)

    # --- saving ---------------------------------------------------------------------------------

    def _save(self) -> None:
        if self._lazy_timer is not None:
            self._lazy_timer.cancel()
            self._lazy_timer = None
        # A producer does two such writes in turn: lingering would make transactions twice as long.
        self.session.write({self._key: self._operation}, lingers=False)

    def _save_later(self) -> None:
        if self._lazy_timer is None:
            loop = asyncio.get_running_loop()
            self._lazy_timer = loop.call_later(LAZY_SECONDS, self._save)

    def _operation(self) -> Operation:
        if self._is_deleted:
            return Delete(self._key)
        return Put(self._key, encode_transaction(self.transaction.record()))

    # --- markers --------------------------------------------------------------------------------

    def _send_markers(self, effect: WriteMarkers, *, bumps_epoch: bool) -> None:
        def on_written(partitions: frozenset[TopicPartition]) -> None:
            if not self.session.has_ended:
                self.handle(
                    MarkersWritten(
                        producer_id=effect.producer_id, epoch=effect.epoch, partitions=partitions
                    )
                )

        self._context.markers.send(self.session, effect, on_written, bumps_epoch=bumps_epoch)

    # --- timer ----------------------------------------------------------------------------------

    def _schedule_timer(self) -> None:
        """Make sure that the timer fires no later than the deadline of the transaction."""
        deadline_ms = self.transaction.deadline_ms
        if deadline_ms is None:
            return  # A timer that is set stays for the next transaction, and fires early then.
        loop = asyncio.get_running_loop()
        delay_ms = min(max(deadline_ms - self._context.clock(), TIMER_MS_MIN), TIMER_MS_MAX)
        due = loop.time() + delay_ms / 1000
        if self._timer is None or self._timer.when() > due:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self.session.has_ended:
            return
        deadline_ms = self.transaction.deadline_ms
        if deadline_ms is not None and deadline_ms <= self._context.clock():
            logger.info(
                "transaction timed out",
                transactional_id=self.transaction.record().transactional_id,
                producer_id=self.transaction.record().producer_id,
            )
            self._context.counters.timed_out += 1
        self.handle(Tick())

    def _count_state(self, before: TransactionState) -> None:
        self._context.states[before] -= 1
        self._context.states[self.transaction.state] += 1
        if not self.transaction.state.is_prepared:
            self._complete()

    def _count(self, before: TransactionState, event: Event) -> None:
        self._count_state(before)
        after = self.transaction.state
        if after is before or isinstance(event, MarkersWritten):
            return
        is_decided = after.is_prepared or (after.is_complete and not before.is_prepared)
        if is_decided and after in {
            TransactionState.PREPARE_COMMIT,
            TransactionState.COMPLETE_COMMIT,
        }:
            self._context.counters.committed += 1
        elif is_decided:
            self._context.counters.aborted += 1
