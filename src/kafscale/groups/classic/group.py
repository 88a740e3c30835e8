"""`ClassicGroup`: a group whose members assign partitions among themselves (KIP-62 and before).

Events in, effects out, compatible with Apache Kafka 4.1 in everything that clients and tools can
observe. Nothing waits in here: a pending request is a reply token. The transition table says what
an event does; `join`, `leave` and `generation` say how.
"""

from collections.abc import Mapping
from typing import Final, Self

from kafscale.errors import GroupNotFoundError, KafscaleError
from kafscale.groups.classic.generation import check_commit, check_transactional_commit
from kafscale.groups.classic.group_state import GroupState, State, Step
from kafscale.groups.classic.join import classify_join
from kafscale.groups.classic.members import Members
from kafscale.groups.classic.transitions import TRANSITIONS
from kafscale.groups.consumer_protocol import PROTOCOL_TYPE
from kafscale.groups.effects import NO_REPLY_TOKEN, Effect
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
from kafscale.groups.group import GroupSettings
from kafscale.groups.model import GroupRecord, GroupType

_STEPS: Final[Mapping[type, Step]] = {
    Sync: Step.SYNC,
    Heartbeat: Step.HEARTBEAT,
    Leave: Step.LEAVE,
    Tick: Step.TICK,
}
"""`classify_join` finds the step of a Join."""


class ClassicGroup:
    """A `Group` of the classic type."""

    __slots__ = ("_group_state", "_last_record", "group_id")

    group_type: Final = GroupType.CLASSIC

    def __init__(self, group_id: str, settings: GroupSettings, now_ms: int) -> None:
        self.group_id = group_id
        self._group_state = GroupState(
            settings=settings, members=Members(), state=State.EMPTY, state_since_ms=now_ms
        )
        self._last_record: GroupRecord | None = None

    @classmethod
    def restored(cls, record: GroupRecord, settings: GroupSettings, now_ms: int) -> Self:
        """The recorded group.

        A stable group continues, and its members need not notice. A group that was rebalancing does
        not know who had joined: its members have to rejoin.
        """
        group = cls(record.group_id, settings, now_ms)
        group._group_state = GroupState.restored(record, settings, now_ms)
        return group

    # --- state ----------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        return self._group_state.state.value

    @property
    def member_count(self) -> int:
        return len(self._group_state.members)

    @property
    def deadline_ms(self) -> int | None:
        return self._group_state.deadline_ms

    def record(self) -> GroupRecord:
        """Its record; of an aborted group, the last one before."""
        if self._last_record is not None:
            return self._last_record
        group = self._group_state
        return GroupRecord(
            group_id=self.group_id,
            group_type=self.group_type,
            state=self.state,
            state_since_ms=group.state_since_ms,
            protocol_type=group.protocol_type,
            protocol=group.protocol,
            leader=group.leader,
            generation=group.generation,
            members={member.member_id: member.record() for member in group.members},
        )

    def subscribes_to(self, topic: str) -> bool:
        """True for a group of consumers whose subscriptions are unknown."""
        group = self._group_state
        if group.topics is None:
            return group.protocol_type == PROTOCOL_TYPE
        return topic in group.topics

    # --- events ---------------------------------------------------------------------------------

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle an event atomically."""
        group = self._group_state
        if isinstance(event, TopicsChanged):
            return []  # The leader watches the topics itself.
        try:
            step = self._step(event, now_ms)
            transition = TRANSITIONS[group.state, step]
            transition.action(group, event, now_ms)
            assert group.state in transition.leads_to, f"{step} led to {group.state}"
        except KafscaleError as error:
            group.reply(event.reply_token if not isinstance(event, Tick) else NO_REPLY_TOKEN, error)
        if isinstance(event, Tick):
            group.deadline_ms = group.next_deadline_ms()
        return group.take_effects()

    def _step(self, event: Event, now_ms: int) -> Step:
        if isinstance(event, Join):
            return classify_join(self._group_state, event, now_ms)
        if isinstance(event, ConsumerHeartbeat):
            raise GroupNotFoundError(f"group {self.group_id} uses the classic protocol")
        return _STEPS[type(event)]

    def configure(self, settings: GroupSettings) -> None:
        self._group_state.settings = settings

    def abort(self, error: KafscaleError, now_ms: int) -> list[Effect]:
        """Fail all pending requests; the group is not served here any more."""
        group = self._group_state
        self._last_record = self.record()
        for member in group.members:
            for reply_token in (member.join_reply_token, member.sync_reply_token):
                group.reply(reply_token, error)
        self._group_state = GroupState(
            settings=group.settings, members=Members(), state=State.DEAD, state_since_ms=now_ms
        )
        return group.take_effects()

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> None:
        check_commit(self._group_state, member_id, instance_id, generation, now_ms)

    def check_transactional_commit(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> None:
        check_transactional_commit(self._group_state, member_id, instance_id, generation)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Every client may read the committed offsets of a classic group."""
