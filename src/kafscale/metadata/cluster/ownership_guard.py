"""A guard: the proof, inside of a commit, that a broker still owns a partition or a shard.

The law: a commit that carries the compare of a guard is made only while the assignment names this
very registration of the broker. An assignment may change without a change of its owner (it is asked
to move, say); a compare that fails is therefore asked about: `renew` reads the assignment again and
raises `FencedError` if the owner is another.
"""

from kafscale.errors import FencedError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_assignment
from kafscale.metadata.schema.model import Assignment
from kafscale.metadata.store.base import Compare, MetadataStore


class OwnershipGuard:
    """What one registration of a broker owns, as far as it knows."""

    __slots__ = ("_store", "assignment", "key")

    def __init__(self, store: MetadataStore, assignment: Assignment) -> None:
        self._store = store
        self.assignment = assignment
        self.key = keys.assignment(assignment.topic, assignment.partition)

    @property
    def compare(self) -> Compare:
        return Compare(key=self.key, mod_revision=self.assignment.mod_revision)

    async def refresh(self) -> None:
        """Learn what the assignment is now; raise `FencedError` if it is not ours any more."""
        entry = await self._store.get(self.key)
        ours = self.assignment
        newest = decode_assignment(entry) if entry is not None else None
        if newest is None or (
            (newest.broker_id, newest.broker_epoch, newest.leader_epoch)
            != (ours.broker_id, ours.broker_epoch, ours.leader_epoch)
        ):
            raise FencedError(f"{ours.topic}/{ours.partition} is somebody else's now")
        self.assignment = newest
