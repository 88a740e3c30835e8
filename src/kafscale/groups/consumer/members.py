"""`Roster`: the members of a consumer group, what they hold, and the epochs that they go through.

The laws:

    assignment epoch <= epoch        targets are made again once something has changed, not before
                                     a member comes that can be told
    member epoch <= assignment epoch
    a partition has one holder at most, whether it is to keep it or to give it up

Whatever changes the group goes through `settle` or `remove`; both say with their effects whether
there is something to save. Who is asking, and whether it may, is for the callers to find out.
"""

import enum
from collections import Counter
from collections.abc import Collection

import msgspec

from kafscale.errors import FencedInstanceError, GroupFullError, UnknownMemberError
from kafscale.groups.config import GroupSettings
from kafscale.groups.consumer.member import NEVER_MS, Member
from kafscale.groups.consumer.member_metadata import Profile
from kafscale.groups.consumer.partition_owners import Holdings
from kafscale.groups.consumer.partition_sets import difference
from kafscale.groups.consumer.reconciliation import AWAY, Standing
from kafscale.groups.consumer.subscriptions import Catalogue
from kafscale.groups.consumer.target_assignment import chosen_assignor, targets
from kafscale.groups.effects import Effect, Rebalanced, Save
from kafscale.groups.model import Partitions


class State(enum.StrEnum):
    """Spelled as Kafka's tools show it; a group that was deleted would be Dead."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class Roster:
    """Everybody who is in the group."""

    __slots__ = (
        "_holdings",
        "_instances",
        "assignment_epoch",
        "catalogue",
        "due_ms",
        "epoch",
        "members",
        "settings",
    )

    def __init__(self, settings: GroupSettings, catalogue: Catalogue) -> None:
        self.settings = settings
        self.catalogue = catalogue
        self.members: dict[str, Member] = {}
        self.epoch = 0
        self.assignment_epoch = 0
        self.due_ms = NEVER_MS
        """No deadline of a member lies before it; there need not be one at it."""
        self._instances: dict[str, Member] = {}
        self._holdings = Holdings()

    @property
    def assignor(self) -> str:
        return chosen_assignor(self.members.values(), self.settings.consumer_assignors)

    @property
    def state(self) -> State:
        if not self.members:
            return State.EMPTY
        if self.epoch > self.assignment_epoch:
            return State.ASSIGNING
        epoch = self.assignment_epoch
        for member in self.members.values():
            if not member.standing.is_reconciled(member.target, epoch):
                return State.RECONCILING
        return State.STABLE

    def is_outdated(self) -> bool:
        """Whether the targets do not share out what there is to read now."""
        if self.epoch > self.assignment_epoch:
            return False
        shared: Counter[bytes] = Counter()
        for member in self.members.values():
            shared.update({topic: len(numbers) for topic, numbers in member.target.items()})
        wishes = {member.profile.wish for member in self.members.values()}
        return shared != self.catalogue.partition_counts(wishes)

    # --- who is there -------------------------------------------------------------------------

    def seated(self, instance_id: str | None) -> Member | None:
        """The static member of this instance, if it has one."""
        return None if instance_id is None else self._instances.get(instance_id)

    def identified(self, member_id: str, instance_id: str | None) -> Member:
        """The member that somebody says it is."""
        if instance_id is None:
            member = self.members.get(member_id)
        else:
            member = self._instances.get(instance_id)
        if member is None:
            raise UnknownMemberError(f"there is no member {instance_id or member_id}")
        if member.member_id != member_id:
            raise FencedInstanceError(f"another member has taken the place of {instance_id}")
        return member

    def newcomer(self, member_id: str) -> Member:
        """A member that is not in yet: only `settle` lets it in."""
        if len(self.members) >= self.settings.consumer_size_max:
            raise GroupFullError(f"the group has {len(self.members)} members, and may have no more")
        return Member(member_id=member_id)

    def successor(self, seated: Member, member_id: str) -> Member:
        """The next incarnation of a static member, which is not in yet either."""
        if self.members.get(member_id, seated) is not seated:
            raise FencedInstanceError(f"{member_id} is another member")
        return seated.successor(member_id)

    def enter(self, member: Member) -> None:
        """Let in one that holds what nobody else does; who had its seat before goes for it."""
        predecessor = self.seated(member.profile.instance_id)
        if predecessor is not None:
            self._drop(predecessor)
        assert member.member_id not in self.members
        self._holdings.take(member.standing)
        self.members[member.member_id] = member
        self._sit(member)
        self.expect(member)

    def remove(self, leavers: Collection[Member], reason: str) -> list[Effect]:
        for member in leavers:
            self._drop(member)
        return [self.bump(reason), Save()] if leavers else []

    # --- how it goes on -----------------------------------------------------------------------

    def settle(
        self,
        member: Member,
        profile: Profile,
        owned: Partitions | None,
        now_ms: int,
        *,
        is_joining: bool,
    ) -> list[Effect]:
        """Let a member be who it says it is, and move it on as far as it can go now."""
        effects: list[Effect] = []
        is_new = self.members.get(member.member_id) is not member
        is_changed = is_new or profile != member.profile
        is_other_wish = profile.wish != member.profile.wish
        member.heartbeat_ms = now_ms
        if is_new:
            member.profile = profile
            self.enter(member)
        elif is_changed:
            self._rise(member)
            member.profile = profile
            self._sit(member)
        if is_other_wish or self.epoch == 0:
            effects.append(self.bump("a member joined" if is_new else "a subscription changed"))
        if self.epoch > self.assignment_epoch:
            self._retarget()
            is_changed = True
        if self._reconcile(member, owned, now_ms, is_joining=is_joining) or is_changed:
            effects.append(Save())
        self.expect(member)
        return effects

    def bump(self, reason: str) -> Rebalanced:
        """Begin a new epoch: targets have to be made again."""
        self.epoch += 1
        return Rebalanced(self.epoch, len(self.members), reason)

    def send_away(self, member: Member) -> list[Effect]:
        """Keep a static member's place, and what it owns; what it was to give up is given up."""
        away = msgspec.structs.replace(member.standing, epoch=AWAY, revoking={})
        self._place(member, away)
        member.revoke_by_ms = NEVER_MS
        return [Save()]

    def awaits_others(self, member: Member) -> bool:
        """Whether something of its target is still held by somebody else."""
        missing = difference(member.target, member.standing.assigned)
        return self._holdings.free(missing) != missing

    def expect(self, member: Member) -> None:
        self.due_ms = min(self.due_ms, member.deadline_ms)

    def expired(self, now_ms: int) -> list[Member]:
        """Who has missed a deadline; from now on, `due_ms` is exact."""
        late = [member for member in self.members.values() if member.deadline_ms <= now_ms]
        in_time = (m.deadline_ms for m in self.members.values() if m.deadline_ms > now_ms)
        self.due_ms = min(in_time, default=NEVER_MS)
        return late

    def _retarget(self) -> None:
        made = targets(self.members.values(), self.catalogue, self.assignor)
        for member_id, target in made.items():
            self.members[member_id].target = target
        self.assignment_epoch = self.epoch

    def _reconcile(
        self, member: Member, owned: Partitions | None, now_ms: int, *, is_joining: bool
    ) -> bool:
        """Whether the member has moved."""
        if member.standing.is_reconciled(member.target, self.assignment_epoch):
            return False
        standing = member.standing.reconciled(
            target=member.target,
            target_epoch=self.assignment_epoch,
            owned=owned,
            is_joining=is_joining,
            free=self._holdings.free,
        )
        if standing is member.standing:
            return False
        self._place(member, standing)
        # Classic members have deadlines of their own, for the steps of their own protocol.
        is_timed = bool(standing.revoking) and not member.profile.is_classic
        member.revoke_by_ms = now_ms + member.profile.rebalance_timeout_ms if is_timed else NEVER_MS
        return True

    def _place(self, member: Member, standing: Standing) -> None:
        self._holdings.release(member.standing)
        self._holdings.take(standing)
        member.standing = standing

    def _drop(self, member: Member) -> None:
        del self.members[member.member_id]
        self._holdings.release(member.standing)
        self._rise(member)

    def _sit(self, member: Member) -> None:
        """Let a static member have the seat of its instance."""
        if member.profile.instance_id is not None:
            self._instances[member.profile.instance_id] = member

    def _rise(self, member: Member) -> None:
        if member.profile.instance_id is not None:
            del self._instances[member.profile.instance_id]
