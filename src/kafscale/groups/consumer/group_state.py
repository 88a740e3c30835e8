"""The state of a consumer group: its members, the partitions they own, and its epochs.

Invariants:

    assignment epoch <= group epoch  targets are computed after a change, when the next member
                                     sends a heartbeat
    member epoch <= assignment epoch
    a partition has at most one owner, whether that keeps or revokes it

All changes go through `update_member` or `remove`; their effects say whether to save. The callers
identify and authorize the member.
"""

import enum
from collections import Counter
from collections.abc import Collection

import msgspec

from kafscale.errors import FencedInstanceError, GroupFullError, UnknownMemberError
from kafscale.groups.consumer.member import NEVER_MS, Member
from kafscale.groups.consumer.member_metadata import MemberMetadata
from kafscale.groups.consumer.partition_sets import difference
from kafscale.groups.consumer.reconciliation import (
    STATIC_LEAVE_EPOCH,
    MemberAssignment,
    PartitionOwners,
)
from kafscale.groups.consumer.subscriptions import TopicSubscriptions
from kafscale.groups.consumer.target_assignment import compute_targets, select_assignor
from kafscale.groups.effects import Effect, Rebalanced, Save
from kafscale.groups.group import GroupSettings
from kafscale.groups.model import Partitions


class State(enum.StrEnum):
    """As in Kafka's tools; a deleted group would be Dead."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class GroupState:
    """All state of a consumer group."""

    __slots__ = (
        "_instances",
        "_owners",
        "assignment_epoch",
        "deadline_ms",
        "epoch",
        "group_id",
        "members",
        "settings",
        "subscriptions",
    )

    def __init__(
        self, group_id: str, settings: GroupSettings, subscriptions: TopicSubscriptions
    ) -> None:
        self.group_id = group_id
        self.settings = settings
        self.subscriptions = subscriptions
        self.members: dict[str, Member] = {}
        self.epoch = 0
        self.assignment_epoch = 0
        self.deadline_ms = NEVER_MS
        """A lower bound of all members' deadlines."""
        self._instances: dict[str, Member] = {}
        self._owners = PartitionOwners()

    @property
    def assignor(self) -> str:
        return select_assignor(self.members.values(), self.settings.consumer_assignors)

    @property
    def state(self) -> State:
        if not self.members:
            return State.EMPTY
        if self.epoch > self.assignment_epoch:
            return State.ASSIGNING
        epoch = self.assignment_epoch
        for member in self.members.values():
            if not member.assignment.is_reconciled(member.target, epoch):
                return State.RECONCILING
        return State.STABLE

    def is_outdated(self) -> bool:
        """Whether the targets do not match the subscribed partitions that exist now."""
        if self.epoch > self.assignment_epoch:
            return False
        shared: Counter[bytes] = Counter()
        for member in self.members.values():
            shared.update({topic: len(numbers) for topic, numbers in member.target.items()})
        subscriptions = {member.metadata.subscription for member in self.members.values()}
        return shared != self.subscriptions.partition_counts(subscriptions)

    # --- lookup -------------------------------------------------------------------------------

    def static_member(self, instance_id: str | None) -> Member | None:
        """The member of a static instance, if any."""
        return None if instance_id is None else self._instances.get(instance_id)

    def member_or_raise(self, member_id: str, instance_id: str | None) -> Member:
        """The member with this identity; raises if it is unknown or fenced."""
        if instance_id is None:
            member = self.members.get(member_id)
        else:
            member = self._instances.get(instance_id)
        if member is None and instance_id is not None:
            raise UnknownMemberError(f"Instance id {instance_id} is unknown.")
        if member is None:
            raise UnknownMemberError(
                f"Member {member_id} is not a member of group {self.group_id}."
            )
        if member.member_id != member_id:
            raise FencedInstanceError(
                f"Static member {member_id} with instance id {instance_id} was fenced by member"
                f" {member.member_id}."
            )
        return member

    def new_member(self, member_id: str) -> Member:
        """A member that is not in the group yet: `update_member` adds it."""
        if len(self.members) >= self.settings.consumer_size_max:
            raise GroupFullError(
                f"the group has reached its maximum of {len(self.members)} members"
            )
        return Member(member_id=member_id)

    def successor(self, static_member: Member, member_id: str) -> Member:
        """The next process of a static member, which is not in the group yet either."""
        if self.members.get(member_id, static_member) is not static_member:
            raise FencedInstanceError(f"{member_id} is another member")
        return static_member.successor(member_id)

    def add(self, member: Member) -> None:
        """Add a member whose partitions are unowned; replaces the member of its instance."""
        predecessor = self.static_member(member.metadata.instance_id)
        if predecessor is not None:
            self._remove(predecessor)
        assert member.member_id not in self.members
        self._owners.acquire(member.assignment)
        self.members[member.member_id] = member
        self._add_static(member)
        self.schedule_deadline(member)

    def remove(self, leaving_members: Collection[Member], reason: str) -> list[Effect]:
        for member in leaving_members:
            self._remove(member)
        return [self.bump_epoch(reason), Save()] if leaving_members else []

    # --- changes ------------------------------------------------------------------------------

    def update_member(
        self,
        member: Member,
        metadata: MemberMetadata,
        owned: Partitions | None,
        now_ms: int,
        *,
        is_joining: bool,
    ) -> list[Effect]:
        """Update a member's metadata, and reconcile it as far as possible now."""
        effects: list[Effect] = []
        is_new = self.members.get(member.member_id) is not member
        is_changed = is_new or metadata != member.metadata
        is_new_subscription = metadata.subscription != member.metadata.subscription
        member.heartbeat_ms = now_ms
        if is_new:
            member.metadata = metadata
            self.add(member)
        elif is_changed:
            self._remove_static(member)
            member.metadata = metadata
            self._add_static(member)
        if is_new_subscription or self.epoch == 0:
            effects.append(
                self.bump_epoch("a member joined" if is_new else "a subscription changed")
            )
        if self.epoch > self.assignment_epoch:
            self._update_targets()
            is_changed = True
        if self._reconcile(member, owned, now_ms, is_joining=is_joining) or is_changed:
            effects.append(Save())
        self.schedule_deadline(member)
        return effects

    def bump_epoch(self, reason: str) -> Rebalanced:
        """Start a new epoch: targets have to be computed again."""
        self.epoch += 1
        return Rebalanced(self.epoch, len(self.members), reason)

    def leave_temporarily(self, member: Member) -> list[Effect]:
        """Keep a static member and its assignment; what it had to revoke is released."""
        left = msgspec.structs.replace(member.assignment, epoch=STATIC_LEAVE_EPOCH, revoking={})
        self._set_assignment(member, left)
        member.revoke_by_ms = NEVER_MS
        return [Save()]

    def waits_for_others(self, member: Member) -> bool:
        """Whether a part of its target is still owned by another member."""
        missing = difference(member.target, member.assignment.assigned)
        return self._owners.unowned(missing) != missing

    def schedule_deadline(self, member: Member) -> None:
        self.deadline_ms = min(self.deadline_ms, member.deadline_ms)

    def expired(self, now_ms: int) -> list[Member]:
        """The members that have missed a deadline; `deadline_ms` is exact from now on."""
        expired = [member for member in self.members.values() if member.deadline_ms <= now_ms]
        in_time = (m.deadline_ms for m in self.members.values() if m.deadline_ms > now_ms)
        self.deadline_ms = min(in_time, default=NEVER_MS)
        return expired

    def _update_targets(self) -> None:
        targets = compute_targets(self.members.values(), self.subscriptions, self.assignor)
        for member_id, target in targets.items():
            self.members[member_id].target = target
        self.assignment_epoch = self.epoch

    def _reconcile(
        self, member: Member, owned: Partitions | None, now_ms: int, *, is_joining: bool
    ) -> bool:
        """Whether the member's assignment has changed."""
        if member.assignment.is_reconciled(member.target, self.assignment_epoch):
            return False
        assignment = member.assignment.reconciled(
            target=member.target,
            target_epoch=self.assignment_epoch,
            owned=owned,
            is_joining=is_joining,
            unowned=self._owners.unowned,
        )
        if assignment is member.assignment:
            return False
        self._set_assignment(member, assignment)
        # Classic members have their own deadlines, for the steps of their protocol.
        is_timed = bool(assignment.revoking) and not member.metadata.is_classic
        member.revoke_by_ms = (
            now_ms + member.metadata.rebalance_timeout_ms if is_timed else NEVER_MS
        )
        return True

    def _set_assignment(self, member: Member, assignment: MemberAssignment) -> None:
        self._owners.release(member.assignment)
        self._owners.acquire(assignment)
        member.assignment = assignment

    def _remove(self, member: Member) -> None:
        del self.members[member.member_id]
        self._owners.release(member.assignment)
        self._remove_static(member)

    def _add_static(self, member: Member) -> None:
        """Register a static member under its instance id."""
        if member.metadata.instance_id is not None:
            self._instances[member.metadata.instance_id] = member

    def _remove_static(self, member: Member) -> None:
        if member.metadata.instance_id is not None:
            del self._instances[member.metadata.instance_id]
