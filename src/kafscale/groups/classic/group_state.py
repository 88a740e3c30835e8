"""How a classic group stands: everything that it remembers, and the small moves steps are made of.

The laws:

1. `due_ms` is never later than the first thing that is due. It may be earlier: a heartbeat puts off
   the end of a session without a look at the others. Then a tick comes too early, finds nothing to
   do, and sets it right.
2. Whatever is worth keeping marks the standing as changed. An event that changed it has one `Save`,
   before all answers, so that those which are durable wait for it.
"""

from typing import Self

import msgspec

from kafscale.errors import KafscaleError
from kafscale.groups.classic.initial_delay import InitialDelay
from kafscale.groups.classic.member import Member
from kafscale.groups.classic.members import Roster
from kafscale.groups.classic.state import FOLLOWERS, State
from kafscale.groups.config import GroupSettings
from kafscale.groups.consumer_protocol import PROTOCOL_TYPE
from kafscale.groups.effects import NO_TICKET, Effect, Reply, Save
from kafscale.groups.model import GroupRecord
from kafscale.groups.responses import Answer, Joined, JoinedMember


class Standing(msgspec.Struct, kw_only=True):
    """The whole of a group; the steps change it, and nobody else does."""

    settings: GroupSettings
    roster: Roster
    state: State
    state_since_ms: int
    generation: int = 0
    protocol_type: str = ""
    protocol: str = ""
    leader: str = ""
    """The id of the member that assigns; empty until there is one."""
    reason: str = ""
    """Why the group rebalances, or did."""
    topics: frozenset[str] | None = None
    """What consumers read in this generation; None where that is not known."""

    join_due_ms: int | None = None
    """Preparing: when those who have joined go on without the others."""
    delay: InitialDelay | None = None
    """Preparing, from Empty: how long a new group waits for its first members."""
    sync_due_ms: int | None = None
    """Completing and Stable: when members that have not synced are given up."""
    due_ms: int | None = None

    effects: list[Effect] = []
    is_changed: bool = False

    @classmethod
    def restored(cls, record: GroupRecord, settings: GroupSettings, now_ms: int) -> Self:
        """The standing that a record was made of; whoever waited then does so no more."""
        standing = cls(
            settings=settings,
            roster=Roster(Member.restored(member, now_ms) for member in record.members.values()),
            state=State(record.state),
            state_since_ms=record.state_since_ms,
            generation=record.generation,
            protocol_type=record.protocol_type,
            protocol=record.protocol,
            leader=record.leader,
        )
        standing.topics = standing.topics_read()
        standing._settle(now_ms)
        return standing

    def _settle(self, now_ms: int) -> None:
        """Find a state in which a group without anybody who waits can be."""
        if not self.roster:
            state = State.EMPTY
        elif self.state is State.STABLE and len(self.roster) <= self.settings.size_max:
            state = State.STABLE
        else:
            state = State.PREPARING
            self.join_due_ms = now_ms + self.roster.rebalance_timeout_ms
            self.reason = "the coordinator has changed"
        if state is not self.state:
            self.state, self.state_since_ms = state, now_ms
        self.due_ms = self.first_due_ms()

    # --- moves ----------------------------------------------------------------------------------

    def move_to(self, state: State, now_ms: int) -> None:
        assert state in FOLLOWERS[self.state], f"{self.state} -> {state}"
        self.state, self.state_since_ms = state, now_ms
        self.is_changed = True

    def reply(
        self, ticket: int, answer: Answer | KafscaleError, *, is_durable: bool = False
    ) -> None:
        if ticket != NO_TICKET:
            self.effects.append(Reply(ticket, answer, is_durable))

    def drain(self) -> list[Effect]:
        """What has to be done, the record first: it is as it is after the event in any case."""
        effects, self.effects = self.effects, []
        if self.is_changed:
            effects.insert(0, Save())
            self.is_changed = False
        return effects

    def joined(self, member: Member, *, is_skipping: bool = False) -> Joined:
        """What a member is told that is in the generation."""
        shown: tuple[JoinedMember, ...] = ()
        if member.member_id == self.leader:
            shown = tuple(
                JoinedMember(each.member_id, each.instance_id, each.metadata(self.protocol))
                for each in self.roster
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

    def topics_read(self) -> frozenset[str] | None:
        """What is known of the topics that the members read: something in consumers' groups."""
        return self.roster.topics(self.protocol) if self.protocol_type == PROTOCOL_TYPE else None

    # --- time -----------------------------------------------------------------------------------

    def hear(self, member: Member, now_ms: int) -> None:
        """A member has shown itself alive, or is to do so from now on."""
        member.heard_ms = now_ms
        self.remind(member.expires_ms)

    def remind(self, at_ms: int | None) -> None:
        if at_ms is not None and (self.due_ms is None or at_ms < self.due_ms):
            self.due_ms = at_ms

    def first_due_ms(self) -> int | None:
        """The first moment at which something is due, by a look at everything."""
        moments = [self.join_due_ms, self.sync_due_ms, *self.roster.promised.values()]
        moments += (member.expires_ms for member in self.roster)
        return min((moment for moment in moments if moment is not None), default=None)
