"""`PartitionOwners`: which partitions have an owner, so that no other member gets them yet.

Invariant: a partition is acquired only while it has no owner, and released only by its owner. A
violation is a bug: two members would read the same partition.
"""

from kafscale.groups.consumer.partition_sets import NOTHING, frozen
from kafscale.groups.consumer.reconciliation import MemberAssignment
from kafscale.groups.model import Partitions


class PartitionOwners:
    """The partitions of all members, including those to be revoked."""

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
