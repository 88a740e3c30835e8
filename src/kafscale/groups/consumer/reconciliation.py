"""What members own: in which epoch, and their next step to the target.

A member revokes before it is assigned more. In every epoch of the group it has a target; the way
there is

                  owns what is not in the target            everything else
    behind     ─────────────────────────────────▶ revoking ─────────────────▶ at the target's epoch
    the epoch        asked to revoke it,          has revoked it            owns what of its target
                     stays in its epoch                                     has no other owner (yet)

Invariants: a member reaches the target's epoch only when it owns nothing outside the target. It is
assigned a partition only when that has no owner. A partition that it has to revoke stays owned
until the member confirms the revocation, after it was asked. So no partition ever has two owners.
One exception: a member that reports, before it was asked, exactly what it may keep is trusted.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from kafscale.errors import FencedMemberEpochError
from kafscale.groups.consumer.partition_sets import (
    NOTHING,
    difference,
    frozen,
    intersection,
    is_overlapping,
    is_within,
    union,
)
from kafscale.groups.model import Partitions

JOIN_EPOCH: Final = 0
"""The epoch of a member that joins."""
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2
"""The epoch of a static member that has left temporarily: its assignment is kept."""


class MemberAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """A member's epoch and partitions, as in its last response or the one being built."""

    epoch: int = JOIN_EPOCH
    previous_epoch: int = -1
    """The epoch that it may still be in, if the last response was lost."""
    assigned: Partitions = {}
    """What it owns and may keep."""
    revoking: Partitions = {}
    """What it owns and has to revoke."""

    def is_reconciled(self, target: Partitions, target_epoch: int) -> bool:
        return self.epoch == target_epoch and self.assigned == target and not self.revoking

    def check_epoch(self, epoch: int, owned: Partitions | None) -> None:
        """Raise unless it is the member's epoch, or the previous one after a lost response."""
        if epoch == self.epoch:
            return
        missed_response = epoch == self.previous_epoch and epoch < self.epoch
        if missed_response and owned is not None and is_within(owned, self.assigned):
            return
        difference = "greater" if epoch > self.epoch else "smaller"
        raise FencedMemberEpochError(
            f"The consumer group member has a {difference} member epoch ({epoch}) than the one"
            f" known by the group coordinator ({self.epoch}). The member must abandon all its"
            " partitions and rejoin."
        )

    def reconciled(
        self,
        *,
        target: Partitions,
        target_epoch: int,
        owned: Partitions | None,
        is_joining: bool,
        unowned: Callable[[Partitions], Partitions],
    ) -> "MemberAssignment":
        """The next step towards the target, or itself if no step is possible now.

        `owned` is what the member reports to own, or None if it reports nothing: then it has
        revoked nothing. A joining member is not taking up partitions meanwhile. `unowned` returns
        the subset of partitions without an owner.
        """
        epoch = self.epoch
        if self.revoking:
            if _owns_any(owned, self.revoking):
                return self
            epoch += 1
        kept = intersection(self.assigned, target)
        revoking = difference(self.assigned, kept)
        if revoking and not _has_revoked(revoking, kept, owned, is_joining=is_joining):
            return MemberAssignment(
                epoch=epoch, previous_epoch=self.epoch, assigned=kept, revoking=revoking
            )
        assigned = union(kept, unowned(difference(target, kept)))
        if epoch == target_epoch and assigned == self.assigned and not self.revoking:
            return self
        return MemberAssignment(epoch=target_epoch, previous_epoch=self.epoch, assigned=assigned)


def _has_revoked(
    revoking: Partitions, kept: Partitions, owned: Partitions | None, *, is_joining: bool
) -> bool:
    """Whether a member no longer owns what it was not yet asked to revoke."""
    if _owns_any(owned, revoking):
        return False
    # A partition that it was assigned and does not own, it may be taking up just now: it has to be
    # asked. A member that owns exactly what it may keep would not respond, as it has nothing to do.
    return is_joining or owned == kept


def _owns_any(owned: Partitions | None, partitions: Partitions) -> bool:
    """Whether a member still owns some of these; true if it reports nothing."""
    return owned is None or is_overlapping(owned, partitions)


class PartitionOwners:
    """The partitions of all members, including those to be revoked.

    Invariant: a partition is acquired only while it has no owner, and released only by its owner. A
    violation is a bug: two members would read the same partition.
    """

    __slots__ = ("_owned",)

    def __init__(self) -> None:
        self._owned: dict[bytes, set[int]] = {}

    def unowned(self, partitions: Partitions) -> Partitions:
        """The subset of partitions without an owner."""
        owned = self._owned
        return frozen(
            {topic: numbers - owned.get(topic, NOTHING) for topic, numbers in partitions.items()}
        )

    def acquire(self, assignment: MemberAssignment) -> None:
        for partitions in (assignment.assigned, assignment.revoking):
            for topic, numbers in partitions.items():
                owned = self._owned.setdefault(topic, set())
                assert owned.isdisjoint(numbers), (
                    f"{topic!r}: {numbers & owned} would have two owners"
                )
                owned |= numbers

    def release(self, assignment: MemberAssignment) -> None:
        for partitions in (assignment.assigned, assignment.revoking):
            for topic, numbers in partitions.items():
                owned = self._owned[topic]
                assert owned >= numbers, f"{topic!r}: no owner of {numbers - owned}"
                owned -= numbers
                if not owned:
                    del self._owned[topic]
