"""`OwnershipGuard`: proves in a transaction that a broker still owns a partition or a shard.

Invariant: a commit that includes the guard's compare succeeds only while the assignment names this
registration of the broker. An assignment may also change without a change of owner, for example
when a reassignment starts. After a failed compare, `refresh` reads the assignment again, and raises
`FencedError` if the owner has changed. After a commit that was not answered, `settle` makes sure
that it cannot be applied any more. `OwnershipGuards` has those of everything a broker owns.
"""

from msgspec.structs import replace

from kafscale.errors import FencedError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_assignment, encode_assignment
from kafscale.metadata.schema.model import Assignment
from kafscale.metadata.store.base import Compare, MetadataStore, Put
from kafscale.text.topic_partition import TopicPartition


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
        self.update(newest)

    async def settle(self) -> None:
        """Write the assignment again, so that no earlier commit with this guard can be applied.

        Raises `FencedError` if the owner has changed.
        """
        ours = self.assignment
        compare = Compare(key=self.key, mod_revision=ours.mod_revision)
        done = await self._store.commit([compare], [Put(self.key, encode_assignment(ours))])
        if done.succeeded:
            self.update(replace(ours, mod_revision=done.revision))
        else:
            # Its revision has changed: this also settles what compares the revision before.
            await self.refresh()

    def update(self, assignment: Assignment) -> None:
        """Record a newer assignment that still names this broker."""
        if assignment.mod_revision > self.assignment.mod_revision:
            self.assignment = assignment


class OwnershipGuards:
    """The guards of what one broker owns, by topic partition."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._guards: dict[TopicPartition, OwnershipGuard] = {}

    def get(self, topic_partition: TopicPartition) -> OwnershipGuard | None:
        return self._guards.get(topic_partition)

    def add(self, assignment: Assignment) -> OwnershipGuard:
        topic_partition = (assignment.topic, assignment.partition)
        guard = self._guards[topic_partition] = OwnershipGuard(self._store, assignment)
        return guard

    def update(self, assignment: Assignment) -> None:
        """Record a newer assignment that still names this broker."""
        self._guards[assignment.topic, assignment.partition].update(assignment)

    def remove(self, topic_partition: TopicPartition) -> None:
        self._guards.pop(topic_partition, None)

    def clear(self) -> None:
        self._guards.clear()
