"""`WriteSequence`: a commit that failed is never applied after a later one.

A commit that was not answered may still be applied: a second later, or an hour. Therefore every
commit of a coordinator compares its sequence key and puts it again. At most one of all commits that
compare the same revision is applied: the next commit that succeeds, or an entry of the key with
another revision, proves that those before it have been applied or never will be.

Commits are sent one at a time. Coordinators need no common key: a shard that changes its owner has
another revision of its assignment, which every commit compares, too.
"""

import asyncio
from collections.abc import Sequence

from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import NO_REVISION
from kafscale.metadata.store.base import Committed, Compare, MetadataStore, Operation, Put


class WriteSequence:
    """The sequence of one coordinator's commits."""

    def __init__(self, store: MetadataStore, broker_id: int) -> None:
        self._store = store
        self.key = keys.group_writer(str(broker_id))
        self._revision: int | None = None
        """The revision of the key that the next commit compares; None if it has to be read."""
        self._lock = asyncio.Lock()

    async def commit(
        self, compares: Sequence[Compare], operations: Sequence[Operation]
    ) -> Committed:
        """Commit after everything before; false if a compare failed, here or of the sequence."""
        async with self._lock:
            if self._revision is None:
                entry = await self._store.get(self.key)
                self._revision = entry.mod_revision if entry else NO_REVISION
            # If this fails, the next commit compares the same revision.
            done = await self._store.commit(
                [*compares, Compare(key=self.key, mod_revision=self._revision)],
                [*operations, Put(self.key, b"")],
            )
            self._revision = done.revision if done.succeeded else None
        return done

    async def settle(self) -> None:
        """Return when no earlier commit can be applied any more; may raise `OperatingError`."""
        while not (await self.commit((), ())).succeeded:
            pass
