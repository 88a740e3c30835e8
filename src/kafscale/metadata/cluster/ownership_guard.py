"""`OwnershipGuard`: proves in a transaction that a broker still owns a partition or a shard.

Invariant: a commit that includes the guard's compare succeeds only while the assignment names this
registration of the broker. An assignment may also change without a change of owner, for example
when a reassignment starts. After a failed compare, `refresh` reads the assignment again, and raises
`FencedError` if the owner has changed.
"""

from kafscale.errors import FencedError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_assignment
from kafscale.metadata.schema.model import Assignment
from kafscale.metadata.store.base import Compare, MetadataStore


class OwnershipGuard:
    """One assignment of a broker registration, as last read."""

    __slots__ = ("_store", "assignment", "key")

    def __init__(self, store: MetadataStore, assignment: Assignment) -> None:
        self._store = store
        self.assignment = assignment
        self.key = keys.assignment(assignment.topic, assignment.partition)

    @property
    def compare(self) -> Compare:
        return Compare(key=self.key, mod_revision=self.assignment.mod_revision)

    async def refresh(self) -> None:
        """Read the assignment again; raise `FencedError` if the owner has changed."""
        entry = await self._store.get(self.key)
        ours = self.assignment
        newest = decode_assignment(entry) if entry is not None else None
        if newest is None or (
            (newest.broker_id, newest.broker_epoch, newest.leader_epoch)
            != (ours.broker_id, ours.broker_epoch, ours.leader_epoch)
        ):
            raise FencedError(f"{ours.topic}/{ours.partition} has another owner now")
        self.assignment = newest
