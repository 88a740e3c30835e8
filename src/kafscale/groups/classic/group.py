"""`ClassicGroup`: a group whose members assign partitions among themselves (KIP-62 and before).

Events in, effects out, as Apache Kafka 4.1 would have it, in everything that a client or a tool can
see. Nothing waits in here: who has to wait leaves a ticket. What an event does is looked up in the
table of transitions; how it does it is in the modules named after the events.
"""

from collections.abc import Mapping
from typing import Final, Self

from kafscale.errors import GroupNotFoundError, KafscaleError
from kafscale.groups.classic import heartbeat, join
from kafscale.groups.classic.group_state import Standing
from kafscale.groups.classic.members import Roster
from kafscale.groups.classic.state import State
from kafscale.groups.classic.step import Step
from kafscale.groups.classic.transitions import TRANSITIONS
from kafscale.groups.config import GroupSettings
from kafscale.groups.consumer_protocol import PROTOCOL_TYPE
from kafscale.groups.effects import NO_TICKET, Effect
from kafscale.groups.events import (
    ConsumerHeartbeat,
    Event,
    Heartbeat,
    Join,
    Leave,
    Sync,
    Tick,
    TopicsChanged,
)
from kafscale.groups.model import GroupRecord, Kind

_STEPS: Final[Mapping[type, Step]] = {
    Sync: Step.SYNC,
    Heartbeat: Step.HEARTBEAT,
    Leave: Step.LEAVE,
    Tick: Step.TICK,
}
"""Which a Join is depends on who joins."""


class ClassicGroup:
    """A `Group` of the classic kind."""

    __slots__ = ("_last_record", "_standing", "group_id")

    kind: Final = Kind.CLASSIC

    def __init__(self, group_id: str, settings: GroupSettings, now_ms: int) -> None:
        self.group_id = group_id
        self._standing = Standing(
            settings=settings, roster=Roster(), state=State.EMPTY, state_since_ms=now_ms
        )
        self._last_record: GroupRecord | None = None

    @classmethod
    def restored(cls, record: GroupRecord, settings: GroupSettings, now_ms: int) -> Self:
        """The group that a record was made of.

        One that was stable goes on, and its members need not notice. One that rebalanced cannot
        know who had joined: its members are called together again.
        """
        group = cls(record.group_id, settings, now_ms)
        group._standing = Standing.restored(record, settings, now_ms)
        return group

    # --- what can be seen of it -----------------------------------------------------------------

    @property
    def state(self) -> str:
        return self._standing.state.value

    @property
    def member_count(self) -> int:
        return len(self._standing.roster)

    @property
    def deadline_ms(self) -> int | None:
        return self._standing.due_ms

    def record(self) -> GroupRecord:
        """What is kept of it; of a group that is dead, how it was when it died."""
        if self._last_record is not None:
            return self._last_record
        standing = self._standing
        return GroupRecord(
            group_id=self.group_id,
            kind=self.kind,
            state=self.state,
            state_since_ms=standing.state_since_ms,
            protocol_type=standing.protocol_type,
            protocol=standing.protocol,
            leader=standing.leader,
            generation=standing.generation,
            members={member.member_id: member.record() for member in standing.roster},
        )

    def subscribes_to(self, topic: str) -> bool:
        """A group of consumers of which nothing is known may read anything."""
        standing = self._standing
        if standing.topics is None:
            return standing.protocol_type == PROTOCOL_TYPE
        return topic in standing.topics

    # --- what happens to it ---------------------------------------------------------------------

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Let an event happen, at once and as a whole."""
        standing = self._standing
        if isinstance(event, TopicsChanged):
            return []  # The leader looks after the topics itself.
        try:
            step = self._step(event, now_ms)
            transition = TRANSITIONS[standing.state, step]
            transition.action(standing, event, now_ms)
            assert standing.state in transition.leads_to, f"{step} led to {standing.state}"
        except KafscaleError as error:
            standing.reply(event.ticket if not isinstance(event, Tick) else NO_TICKET, error)
        if isinstance(event, Tick):
            standing.due_ms = standing.first_due_ms()
        return standing.drain()

    def _step(self, event: Event, now_ms: int) -> Step:
        if isinstance(event, Join):
            return join.whose(self._standing, event, now_ms)
        if isinstance(event, ConsumerHeartbeat):
            raise GroupNotFoundError(f"group {self.group_id} speaks the classic protocol")
        return _STEPS[type(event)]

    def dismiss(self, error: KafscaleError, now_ms: int) -> list[Effect]:
        """Answer everybody who waits with an error; the group is not looked after here any more."""
        standing = self._standing
        self._last_record = self.record()
        for member in standing.roster:
            for ticket in (member.join_ticket, member.sync_ticket):
                standing.reply(ticket, error)
        self._standing = Standing(
            settings=standing.settings, roster=Roster(), state=State.DEAD, state_since_ms=now_ms
        )
        return standing.drain()

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> None:
        heartbeat.check_commit(self._standing, member_id, instance_id, generation, now_ms)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Committed offsets of a classic group are for everybody to read."""
