"""The runtime of one group: its state machine, its pending replies, its offsets and its timer.

Invariants: an event is handled atomically, and its effects are executed in order. The timer may
fire early, never late: a heartbeat moves a deadline, but not the timer.
"""

import asyncio
from collections.abc import Callable
from functools import partial

import msgspec
from msgspec.structs import replace

from kafscale.broker.group_coordinator.group_offsets import GroupOffsets
from kafscale.broker.group_coordinator.open_transactions import OpenTransactions
from kafscale.broker.shards.pausable_clock import PausableClock
from kafscale.broker.shards.pending_replies import PendingReplies
from kafscale.broker.shards.shard_session import ShardSession
from kafscale.errors import KafscaleError
from kafscale.groups.effects import Effect, Rebalanced, Reply, Save
from kafscale.groups.events import ConsumerHeartbeat, Event, Heartbeat, Tick
from kafscale.groups.group import Group
from kafscale.groups.model import GroupRecord
from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import Delete, Operation, Put
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.counters import GroupCounters

logger = get_logger(__name__)

TIMER_MS_MIN = 10
"""A paused clock must not make the timer fire in a busy loop."""


class OffsetSettings(msgspec.Struct, frozen=True, kw_only=True):
    """When committed offsets expire, and how large they may be."""

    retention_ms: int
    check_interval_ms: int
    group_metadata_bytes_max: int
    """Of all offsets of a group together."""


class GroupRuntime:
    """Runs one group."""

    def __init__(
        self,
        group: Group,
        session: ShardSession,
        pending_replies: PendingReplies,
        counters: GroupCounters,
        *,
        encode: Callable[[GroupRecord], bytes],
        clock: PausableClock,
        open_transactions: OpenTransactions,
    ) -> None:
        self.group = group
        self.session = session
        """The shard session of the group; all its writes carry the session's ownership guard."""
        self.offsets = GroupOffsets(group.group_id, session, open_transactions)
        self.is_saved = False
        """Whether the group's record is in the store, or about to be written."""
        self._pending_replies = pending_replies
        self._counters = counters
        self._encode = encode
        self._clock = clock
        self._key = keys.consumer_group(group.group_id)
        self._timer: asyncio.TimerHandle | None = None
        self._is_deleted = False
        self._schedule_timer()

    @property
    def is_empty(self) -> bool:
        """Whether the group has no record, offsets, transactions, members or deadlines."""
        return (
            not self.is_saved
            and self.offsets.is_empty
            and not self.group.member_count
            and self.group.deadline_ms is None
        )

    def handle(self, event: Event) -> None:
        """Pass an event to the group, and execute the effects."""
        effects = self.group.handle(event, self._clock())
        self.execute(effects)
        if not _is_plain_heartbeat(event, effects):
            self._schedule_timer()

    def replace_group(self, group: Group) -> None:
        """Continue as a group of the other type; offsets stay."""
        self.group = group
        self.save()
        self._schedule_timer()

    def execute(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply(reply_token, response, is_durable=False):
                    self._pending_replies.resolve(reply_token, response)
                case Reply(reply_token, response):
                    resolve = partial(self._pending_replies.resolve, reply_token)
                    self.session.when_durable(partial(resolve, response), on_lost=resolve)
                case Save():
                    self.save()
                case Rebalanced():
                    self._log_rebalance(effect)

    def record(self) -> GroupRecord:
        """The group's record, with wall-clock times."""
        record = self.group.record()
        return replace(record, state_since_ms=record.state_since_ms + self._clock.skew_ms)

    def save(self) -> None:
        self.is_saved = True
        self.session.write({self._key: self._operation})

    def count_commit(self) -> None:
        self._counters.commits += 1

    def delete(self) -> None:
        """Delete everything from the store; the group must not be used any more."""
        self.close()
        self._is_deleted = True
        self.session.write({self._key: self._operation})
        self.offsets.delete_all()

    def abort(self, error: KafscaleError) -> None:
        """Fail all pending requests with this error; the group is not served any more."""
        self.close()
        self.execute(self.group.abort(error, self._clock()))

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _operation(self) -> Operation:
        if self._is_deleted:
            return Delete(self._key)
        return Put(self._key, self._encode(self.record()))

    def _log_rebalance(self, rebalanced: Rebalanced) -> None:
        self._counters.rebalances += 1
        logger.info(
            "consumer_rebalance",
            group_id=self.group.group_id,
            generation=rebalanced.generation,
            member_count=rebalanced.member_count,
            reason=rebalanced.reason,
        )

    # --- timer ----------------------------------------------------------------------------------

    def _schedule_timer(self) -> None:
        """Make sure that the timer fires no later than the group's deadline."""
        deadline_ms = self.group.deadline_ms
        if deadline_ms is None:
            self.close()
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + max(deadline_ms - self._clock(), TIMER_MS_MIN) / 1000
        if self._timer is None or self._timer.when() > due:
            self.close()
            self._timer = loop.call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.handle(Tick())


def _is_plain_heartbeat(event: Event, effects: list[Effect]) -> bool:
    """Whether the event was a heartbeat without consequences, so that no deadline is earlier."""
    if not isinstance(event, Heartbeat | ConsumerHeartbeat) or len(effects) != 1:
        return False
    reply = effects[0]
    return (
        isinstance(reply, Reply)
        and not reply.is_durable
        and not isinstance(reply.response, KafscaleError)
    )
