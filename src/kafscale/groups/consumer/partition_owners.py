"""`Holdings`: which partitions are held by some member, so that nobody else may have them yet.

The law: a partition is taken only while it is free, and let go only by who took it. A violation is
a bug of ours, for it would mean that two members read the same partition.
"""

from kafscale.groups.consumer.partition_sets import NOTHING, frozen
from kafscale.groups.consumer.reconciliation import Standing
from kafscale.groups.model import Partitions


class Holdings:
    """The partitions of all members, those to be given up included."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[bytes, set[int]] = {}

    def free(self, partitions: Partitions) -> Partitions:
        """Those of the partitions that nobody holds."""
        held = self._held
        return frozen(
            {topic: numbers - held.get(topic, NOTHING) for topic, numbers in partitions.items()}
        )

    def take(self, standing: Standing) -> None:
        for partitions in (standing.assigned, standing.revoking):
            for topic, numbers in partitions.items():
                held = self._held.setdefault(topic, set())
                assert held.isdisjoint(numbers), (
                    f"{topic!r}: {numbers & held} would have two owners"
                )
                held |= numbers

    def release(self, standing: Standing) -> None:
        for partitions in (standing.assigned, standing.revoking):
            for topic, numbers in partitions.items():
                held = self._held[topic]
                assert held >= numbers, f"{topic!r}: nobody held {numbers - held}"
                held -= numbers
                if not held:
                    del self._held[topic]
