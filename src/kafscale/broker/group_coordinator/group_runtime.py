"""A group that this broker answers for: its machine, its offsets, and the one timer that it needs.

The laws: an event happens at once and as a whole, and its effects are carried out in their order.
The timer is only ever early: a heartbeat moves a deadline, and not the timer.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from kafscale.broker.group_coordinator.offsets import GroupOffsets
from kafscale.broker.group_coordinator.pausable_clock import GroupClock
from kafscale.broker.group_coordinator.pending_replies import Tickets
from kafscale.broker.group_coordinator.shard_session import Tenure
from kafscale.errors import KafscaleError
from kafscale.groups.effects import Effect, Rebalanced, Reply, Save
from kafscale.groups.events import ConsumerHeartbeat, Event, Heartbeat, Tick
from kafscale.groups.group import Group
from kafscale.groups.model import GroupRecord
from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import Delete, Operation, Put
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.counters import GroupCounters

log = get_logger(__name__)

RING_MS_MIN = 10
"""A clock that stands still does not make its timers ring without end."""


class HostedGroup:
    """One group at work."""

    def __init__(
        self,
        group: Group,
        tenure: Tenure,
        tickets: Tickets,
        traffic: GroupCounters,
        *,
        encode: Callable[[GroupRecord], bytes],
        clock: GroupClock,
    ) -> None:
        self.group = group
        self.tenure = tenure
        """In which the group is here; whatever it wants written is written under its claim."""
        self.offsets = GroupOffsets(group.group_id, tenure)
        self.is_saved = False
        """Whether the store knows the group, or soon will."""
        self._tickets = tickets
        self._traffic = traffic
        self._encode = encode
        self._clock = clock
        self._key = keys.consumer_group(group.group_id)
        self._timer: asyncio.TimerHandle | None = None
        self._is_deleted = False
        self._arm()

    @property
    def is_void(self) -> bool:
        """Whether nothing is known of the group that anybody could miss."""
        return (
            not self.is_saved
            and not self.offsets.newest
            and not self.group.member_count
            and self.group.deadline_ms is None
        )

    def happen(self, event: Event) -> None:
        """Let an event happen to the group."""
        effects = self.group.handle(event, self._clock())
        self.carry_out(effects)
        if not _is_plain_heartbeat(event, effects):
            self._arm()

    def become(self, group: Group) -> None:
        """Go on as a group of the other kind; offsets stay as they are."""
        self.group = group
        self.save()
        self._arm()

    def carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply(ticket, answer, durable=False):
                    self._tickets.answer(ticket, answer)
                case Reply(ticket, answer):
                    answered = partial(self._tickets.answer, ticket)
                    self.tenure.when_durable(partial(answered, answer), lost=answered)
                case Save():
                    self.save()
                case Rebalanced():
                    self._tell(effect)

    def record(self) -> GroupRecord:
        """The group as others are shown it, by the time of the world."""
        record = self.group.record()
        return replace(record, state_since_ms=record.state_since_ms + self._clock.skew_ms)

    def save(self) -> None:
        self.is_saved = True
        self.tenure.write({self._key: self._operation})

    def commit_counted(self) -> None:
        self._traffic.commits += 1

    def delete(self) -> None:
        """Remove everything from the store; the group is not to be used any more."""
        self.close()
        self._is_deleted = True
        self.tenure.write({self._key: self._operation})
        self.offsets.forget(tuple(self.offsets.newest))

    def send_away(self, error: KafscaleError) -> None:
        """Answer everybody who waits with this error; the group is not looked after any more."""
        self.close()
        self.carry_out(self.group.dismiss(error, self._clock()))

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _operation(self) -> Operation:
        if self._is_deleted:
            return Delete(self._key)
        return Put(self._key, self._encode(self.record()))

    def _tell(self, rebalanced: Rebalanced) -> None:
        self._traffic.rebalances += 1
        log.info(
            "consumer_rebalance",
            group_id=self.group.group_id,
            generation=rebalanced.generation,
            member_count=rebalanced.member_count,
            reason=rebalanced.reason,
        )

    # --- time -----------------------------------------------------------------------------------

    def _arm(self) -> None:
        """See to it that the timer goes off no later than something is due."""
        deadline_ms = self.group.deadline_ms
        if deadline_ms is None:
            self.close()
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + max(deadline_ms - self._clock(), RING_MS_MIN) / 1000
        if self._timer is None or self._timer.when() > due:
            self.close()
            self._timer = loop.call_at(due, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self.happen(Tick())


def _is_plain_heartbeat(event: Event, effects: list[Effect]) -> bool:
    """Whether a member has only shown that it is alive, so that nothing is due any earlier."""
    if not isinstance(event, Heartbeat | ConsumerHeartbeat) or len(effects) != 1:
        return False
    reply = effects[0]
    return (
        isinstance(reply, Reply)
        and not reply.durable
        and not isinstance(reply.answer, KafscaleError)
    )
