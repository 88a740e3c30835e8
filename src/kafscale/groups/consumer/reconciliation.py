"""`Standing`: what a member owns, in which epoch, and the step that takes it closer to its target.

A member gives up before it gets. In every epoch of the group it has a target; the way there is

                  owns what is not in the target            everything else
    behind     ─────────────────────────────────▶ revoking ─────────────────▶ at the target's epoch
    the epoch        told to give it up,           has given it up           owns what of its target
                     stays in its epoch                                      nobody else holds (yet)

The laws: a member reaches the epoch of the target only when it owns nothing that is not in it; it
is given a partition only when nobody holds it; and a partition that it is to give up stays held
until it says that it no longer owns it, after it was told. So no partition ever has two owners.
One exception: who says, before it was told, that it owns just what it may keep is believed.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from kafscale.errors import FencedMemberEpochError
from kafscale.groups.consumer.partition_sets import (
    difference,
    intersection,
    is_overlapping,
    is_within,
    union,
)
from kafscale.groups.model import Partitions

JOINING: Final = 0
"""The epoch of a member that joins."""
LEAVING: Final = -1
AWAY: Final = -2
"""The epoch of a static member that has left for a while: its place is kept."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where a member stands, as it was told or will be in the answer at hand."""

    epoch: int = JOINING
    previous_epoch: int = -1
    """The one that it may still be in, where the last answer was lost."""
    assigned: Partitions = {}
    """What it owns and may keep."""
    revoking: Partitions = {}
    """What it owns and has to give up."""

    def is_reconciled(self, target: Partitions, target_epoch: int) -> bool:
        return self.epoch == target_epoch and self.assigned == target and not self.revoking

    def check_epoch(self, epoch: int, owned: Partitions | None) -> None:
        """Raise unless it is the member's, or the one before, where an answer may be lost."""
        if epoch == self.epoch:
            return
        missed_answer = epoch == self.previous_epoch and epoch < self.epoch
        if missed_answer and owned is not None and is_within(owned, self.assigned):
            return
        raise FencedMemberEpochError(
            f"the member is in epoch {self.epoch}, not {epoch}: it must abandon all its partitions"
            " and join again"
        )

    def reconciled(
        self,
        *,
        target: Partitions,
        target_epoch: int,
        owned: Partitions | None,
        is_joining: bool,
        free: Callable[[Partitions], Partitions],
    ) -> "Standing":
        """The next step towards the target, or itself where there is none to take now.

        `owned` is what the member says it owns, None where it does not say: then it has given up
        nothing. One that is joining takes up nothing meanwhile. `free` tells what of some
        partitions is held by nobody.
        """
        epoch = self.epoch
        if self.revoking:
            if _owns_some(owned, self.revoking):
                return self
            epoch += 1
        kept = intersection(self.assigned, target)
        revoking = difference(self.assigned, kept)
        if revoking and not _has_let_go(revoking, kept, owned, is_joining=is_joining):
            return Standing(
                epoch=epoch, previous_epoch=self.epoch, assigned=kept, revoking=revoking
            )
        assigned = union(kept, free(difference(target, kept)))
        if epoch == target_epoch and assigned == self.assigned and not self.revoking:
            return self
        return Standing(epoch=target_epoch, previous_epoch=self.epoch, assigned=assigned)


def _has_let_go(
    revoking: Partitions, kept: Partitions, owned: Partitions | None, *, is_joining: bool
) -> bool:
    """Whether a member that was not yet told to give something up does not own it any more."""
    if _owns_some(owned, revoking):
        return False
    # What it was given and does not own, it may be taking up just now: it has to be asked. One that
    # owns just what it may keep would not answer, as there is nothing for it to do.
    return is_joining or owned == kept


def _owns_some(owned: Partitions | None, partitions: Partitions) -> bool:
    """Whether a member still owns some of these, as it does where it says nothing."""
    return owned is None or is_overlapping(owned, partitions)
