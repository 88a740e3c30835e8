"""The metadata store of a simulated cluster: topics, assignments and partition states.

Brokers save states with the product's own `PartitionStateStore`. Each has its own connection, whose
commits fail like those of etcd: without effect, with a lost response, or with a late effect. A late
commit compares revisions when it takes effect, so it must not undo anything. The metadata checks
that the offsets of a partition never move back.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from random import Random
from typing import Final

from doubles.memory_store import MemoryStore
from kafscale.errors import StoreUnavailableError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_assignment, encode_assignment
from kafscale.metadata.schema.model import Assignment, PartitionState, Topic
from kafscale.metadata.schema.topic_codec import decode_partition_state, decode_topic, encode_topic
from kafscale.metadata.store.base import (
    Committed,
    Compare,
    DeletePrefix,
    Entry,
    Event,
    Operation,
    Put,
    Snapshot,
)
from simulation.model import NAMESPACE, InvariantViolationError, SimulatedTopic

LATE_SECONDS: Final = ((0.1, 1), (1, 60), (60, 3 * 3600))


class SimulatedMetadata:
    """What the metadata store holds; operations here do not fail."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.store = MemoryStore(lambda: round(asyncio.get_running_loop().time() * 1000))
        self.failing_share = 0.0
        """How many commits and reads fail."""
        self.has_late_commits = False
        self.topics: dict[bytes, Topic] = {}
        """All topics that ever existed, by id: a broker may not have noticed a deletion."""

    async def add_topic(self, topic: SimulatedTopic) -> None:
        record = Topic(
            name=topic.name,
            id=topic.id,
            partitions=len(topic.partitions),
            configs={},
            created_ms=1,
            namespace=NAMESPACE,
            id_in_keys=topic.directory != topic.name,
        )
        key = keys.topic_config(topic.name)
        await self.store.commit([], [Put(key, encode_topic(record))])
        entry = await self.store.get(key)
        assert entry is not None
        self.topics[topic.id] = decode_topic(entry)

    async def remove_topic(self, topic: SimulatedTopic) -> None:
        await self.store.commit(
            [], [DeletePrefix(keys.topic(topic.name)), DeletePrefix(keys.assignments(topic.name))]
        )

    async def assign(self, assignment: Assignment) -> Assignment:
        key = keys.assignment(assignment.topic, assignment.partition)
        await self.store.commit([], [Put(key, encode_assignment(assignment))])
        entry = await self.store.get(key)
        assert entry is not None
        return decode_assignment(entry)

    async def states(self) -> dict[tuple[bytes, int], PartitionState]:
        """The states of all partitions, by topic id and partition."""
        entries = (await self.store.range(keys.TOPICS)).entries
        states = [decode_partition_state(entry) for entry in entries if _is_state(entry.key)]
        return {(state.topic_id, state.partition): state for state in states}

    async def commit(
        self, compares: Sequence[Compare], operations: Sequence[Operation]
    ) -> Committed:
        before = {each.key: await self.store.get(each.key) for each in operations}
        done = await self.store.commit(compares, operations)
        if done.succeeded:
            for key, entry in before.items():
                if entry is not None and _is_state(key):
                    await self._check_forward(entry)
        return done

    async def _check_forward(self, before: Entry) -> None:
        after = await self.store.get(before.key)
        assert after is not None
        old, new = decode_partition_state(before), decode_partition_state(after)
        if old.topic_id == new.topic_id and (
            new.log_start_offset < old.log_start_offset or new.rolled_end < old.rolled_end
        ):
            raise InvariantViolationError(
                f"{before.key}: saved offsets went from {old.log_start_offset}..{old.rolled_end}"
                f" back to {new.log_start_offset}..{new.rolled_end}"
            )


class MetadataConnection:
    """The metadata store as one broker reaches it."""

    def __init__(self, metadata: SimulatedMetadata) -> None:
        self.is_down = False
        """While true, every request fails."""
        self.resumed: asyncio.Event | None = None
        """While the process is suspended: set when it continues."""
        self._metadata = metadata
        self._random = metadata.random
        self._late: set[asyncio.Task[Committed]] = set()

    async def get(self, key: str) -> Entry | None:
        await self._begin()
        return await self._metadata.store.get(key)

    async def range(self, prefix: str) -> Snapshot:
        await self._begin()
        return await self._metadata.store.range(prefix)

    async def commit(
        self, compares: Sequence[Compare], operations: Sequence[Operation]
    ) -> Committed:
        await self._begin()
        if self._metadata.has_late_commits and self._fails():
            late = asyncio.create_task(self._commit_later(compares, operations))
            self._late.add(late)
            late.add_done_callback(self._on_committed)
            raise StoreUnavailableError("the commit is under way (injected)")
        done = await self._metadata.commit(compares, operations)
        if self._fails():
            raise StoreUnavailableError("the response of the commit is lost (injected)")
        return done

    async def _commit_later(
        self, compares: Sequence[Compare], operations: Sequence[Operation]
    ) -> Committed:
        await asyncio.sleep(self._random.uniform(*self._random.choice(LATE_SECONDS)))
        return await self._metadata.commit(compares, operations)

    def _on_committed(self, late: "asyncio.Task[Committed]") -> None:
        self._late.discard(late)
        if not late.cancelled():
            late.result()

    async def _begin(self) -> None:
        await asyncio.sleep(self._random.choice((0, 0.01)))
        while self.resumed is not None:
            await self.resumed.wait()
        if self.is_down or self._fails():
            raise StoreUnavailableError("the metadata store is unavailable (injected)")

    def _fails(self) -> bool:
        share = self._metadata.failing_share
        return share > 0 and self._random.random() < share / 3

    # --- not used by brokers that save states ---------------------------------------------------

    def watch(self, prefix: str, after_revision: int) -> AsyncGenerator[list[Event], None]:
        raise NotImplementedError

    async def grant(self, ttl_ms: int) -> int:
        raise NotImplementedError

    async def keep_alive(self, lease: int) -> bool:
        raise NotImplementedError

    async def revoke(self, lease: int) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing to close."""


def _is_state(key: str) -> bool:
    return isinstance(keys.parse(key), keys.PartitionStateKey)
