"""The state of a classic group, its states and their transitions.

    Empty ◀──── no member left ──── PreparingRebalance ◀── a member joins, leaves, changes ── Stable
      │                              ▲   │     ▲                                                ▲
      └────────── first join ────────┘   │     │ a member joins, leaves, changes, never syncs   │
                                         ▼     │                                                │
      all have joined, or timed out:  CompletingRebalance ───── the leader has synced ──────────┘

A group in any state can be aborted, and is `Dead` then: another broker is its coordinator.

Invariants:

1. `deadline_ms` is never later than the first deadline. It may be earlier: a heartbeat extends a
   session without recomputing the minimum. Then a tick comes too early, finds nothing to do, and
   recomputes it.
2. Every change worth storing sets `is_changed`. An event that changed the group has one `Save`,
   before all replies, so that durable replies wait for it.
"""

import enum
from collections.abc import Mapping
from typing import Final, Self

import msgspec

from kafscale.errors import KafscaleError
from kafscale.groups.classic.member import Member
from kafscale.groups.classic.members import Members
from kafscale.groups.consumer_protocol import PROTOCOL_TYPE
from kafscale.groups.effects import (
    NO_REPLY_TOKEN,
    Effect,
    Joined,
    JoinedMember,
    Reply,
    Response,
    Save,
)
from kafscale.groups.group import GroupSettings
from kafscale.groups.model import GroupRecord


class State(enum.StrEnum):
    """As in Kafka's tools."""

    EMPTY = "Empty"
    """No members; there may be committed offsets."""
    PREPARING = "PreparingRebalance"
    """Members join; responses wait until all have joined, or the time is over."""
    COMPLETING = "CompletingRebalance"
    """A generation has started; its members wait for the leader's assignment."""
    STABLE = "Stable"
    """All members have assignments, and send heartbeats."""
    DEAD = "Dead"
    """The group is not served here any more."""


NEXT_STATES: Final[Mapping[State, frozenset[State]]] = {
    State.EMPTY: frozenset({State.PREPARING}),
    State.PREPARING: frozenset({State.COMPLETING, State.EMPTY}),
    State.COMPLETING: frozenset({State.STABLE, State.PREPARING}),
    State.STABLE: frozenset({State.PREPARING}),
    State.DEAD: frozenset(),
}
"""Direct transitions; the table in `transitions` has the final states of each event."""


class Step(enum.Enum):
    """The columns of the transition table: kinds of events."""

    NEW_MEMBER = "Join of a new member"
    REJOIN = "Join of a member with an id"
    STATIC_REJOIN = "Join of a static member without its id"
    SYNC = "Sync"
    HEARTBEAT = "Heartbeat"
    LEAVE = "Leave"
    TICK = "Tick"


class InitialDelay(msgspec.Struct, gc=False):
    """The initial rebalance delay: a new group gives its members time to join (KIP-134).

    Without it the first generation would have one member, and each later one would start another.
    The delay starts again while new members arrive, but not beyond the first member's rebalance
    timeout.
    """

    step_ms: int
    limit_ms: int
    """When it ends in any case."""
    has_new_member: bool = False
    """Whether a member has joined since the delay last started."""

    @classmethod
    def start(cls, step_ms: int, rebalance_timeout_ms: int, now_ms: int) -> Self:
        return cls(step_ms, now_ms + max(step_ms, rebalance_timeout_ms))

    def extend(self, now_ms: int) -> int | None:
        """The next end of a delay that is over now; None if it does not start again.

        >>> delay = InitialDelay.start(step_ms=3_000, rebalance_timeout_ms=5_000, now_ms=0)
        >>> delay.has_new_member = True
        >>> delay.extend(3_000)
        5000
        >>> delay.extend(5_000) is None
        True
        """
        end_ms = min(now_ms + self.step_ms, self.limit_ms)
        if not self.has_new_member or end_ms <= now_ms:
            return None
        self.has_new_member = False
        return end_ms


class GroupState(msgspec.Struct, kw_only=True):
    """All state of a group; only the actions of transitions change it."""

    settings: GroupSettings
    members: Members
    state: State
    state_since_ms: int
    generation: int = 0
    protocol_type: str = ""
    protocol: str = ""
    leader: str = ""
    """The id of the leader; empty if there is none."""
    reason: str = ""
    """The reason of the last rebalance."""
    topics: frozenset[str] | None = None
    """Subscribed topics of this generation; None if unknown."""

    join_deadline_ms: int | None = None
    """Preparing: when the generation starts without members that have not joined."""
    initial_delay: InitialDelay | None = None
    """Preparing, from Empty: the initial rebalance delay."""
    sync_deadline_ms: int | None = None
    """Completing and Stable: when members that have not synced are removed."""
    deadline_ms: int | None = None

    effects: list[Effect] = []
    is_changed: bool = False

    @classmethod
    def restored(cls, record: GroupRecord, settings: GroupSettings, now_ms: int) -> Self:
        """The state of a recorded group, without pending requests."""
        group = cls(
            settings=settings,
            members=Members(Member.restored(member, now_ms) for member in record.members.values()),
            state=State(record.state),
            state_since_ms=record.state_since_ms,
            generation=record.generation,
            protocol_type=record.protocol_type,
            protocol=record.protocol,
            leader=record.leader,
        )
        group.topics = group.subscribed_topics()
        group._normalize_state(now_ms)
        return group

    def _normalize_state(self, now_ms: int) -> None:
        """Choose a state that needs no pending requests."""
        if not self.members:
            state = State.EMPTY
        elif self.state is State.STABLE and len(self.members) <= self.settings.size_max:
            state = State.STABLE
        else:
            state = State.PREPARING
            self.join_deadline_ms = now_ms + self.members.rebalance_timeout_ms
            self.reason = "the coordinator has changed"
        if state is not self.state:
            self.state, self.state_since_ms = state, now_ms
        self.deadline_ms = self.next_deadline_ms()

    # --- actions --------------------------------------------------------------------------------

    def transition_to(self, state: State, now_ms: int) -> None:
        assert state in NEXT_STATES[self.state], f"{self.state} -> {state}"
        self.state, self.state_since_ms = state, now_ms
        self.is_changed = True

    def reply(
        self, reply_token: int, response: Response | KafscaleError, *, is_durable: bool = False
    ) -> None:
        if reply_token != NO_REPLY_TOKEN:
            self.effects.append(Reply(reply_token, response, is_durable))

    def take_effects(self) -> list[Effect]:
        """Take the effects of the event, with `Save` first."""
        effects, self.effects = self.effects, []
        if self.is_changed:
            effects.insert(0, Save())
            self.is_changed = False
        return effects

    def join_response(self, member: Member, *, is_skipping: bool = False) -> Joined:
        """The response for a member of this generation."""
        shown: tuple[JoinedMember, ...] = ()
        if member.member_id == self.leader:
            shown = tuple(
                JoinedMember(other.member_id, other.instance_id, other.metadata(self.protocol))
                for other in self.members
            )
        return Joined(
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader,
            member_id=member.member_id,
            members=shown,
            skip_assignment=is_skipping,
        )

    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics that members subscribe to, if they are consumers; else None."""
        return self.members.topics(self.protocol) if self.protocol_type == PROTOCOL_TYPE else None

    # --- deadlines ------------------------------------------------------------------------------

    def record_heartbeat(self, member: Member, now_ms: int) -> None:
        """Start a member's session timeout again."""
        member.heartbeat_ms = now_ms
        self.schedule_deadline(member.expires_ms)

    def schedule_deadline(self, at_ms: int | None) -> None:
        if at_ms is not None and (self.deadline_ms is None or at_ms < self.deadline_ms):
            self.deadline_ms = at_ms

    def next_deadline_ms(self) -> int | None:
        """The first deadline of all, recomputed."""
        deadlines_ms = [
            self.join_deadline_ms,
            self.sync_deadline_ms,
            *self.members.pending_member_ids.values(),
        ]
        deadlines_ms += (member.expires_ms for member in self.members)
        return min(
            (deadline_ms for deadline_ms in deadlines_ms if deadline_ms is not None), default=None
        )
