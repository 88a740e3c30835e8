"""Coordinators that share a store, and members that send requests to them.

def test_something():
    async def body(cluster):
        first, second = await cluster.node(), await cluster.node()
        await first.open_shards_of(GROUP)
        ...

    simulate(body)
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from random import Random

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.broker.group_coordinator.coordinator import Coordinator
from kafscale.broker.group_coordinator.group_runtime import OffsetSettings
from kafscale.broker.shards.pausable_clock import PausableClock
from kafscale.broker.shards.shards import Shards
from kafscale.errors import StoreUnavailableError
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.groups.effects import NO_REPLY_TOKEN, Joined, Reconciled
from kafscale.groups.events import ConsumerHeartbeat, Heartbeat, Join, Sync
from kafscale.groups.group import GroupSettings
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import shard_of
from kafscale.metadata.store.base import MetadataStore
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.metrics.broker import Metrics
from unit.broker.group_coordinator.shard_guards import assign_shards

GROUP = "readers"
OTHER = "others"
TOPIC = "orders"
TOPIC_ID = b"orders".ljust(16, b"-")
SESSION_MS = 10_000
OFFSETS = OffsetSettings(
    retention_ms=604_800_000, check_interval_ms=600_000, group_metadata_bytes_max=2**20
)

assert shard_of(GROUP) != shard_of(OTHER)


class ControllableStore(MemoryStore):
    """A store that can be blocked or unavailable."""

    def __init__(self) -> None:
        super().__init__(virtual_time.clock_ms)
        self.is_unavailable = False
        self.open = asyncio.Event()
        self.open.set()
        self.rejected = 0
        self.late_seconds: float | None = None
        """The next commit fails, and is applied after this time."""
        self.watch_gate: asyncio.Event | None = None
        """Watches that start while it is set deliver nothing before the event."""

    async def commit(self, compares, operations):
        await self._check_available()
        if self.late_seconds is not None:
            delay, self.late_seconds = self.late_seconds, None
            late = super().commit(compares, operations)
            asyncio.get_running_loop().call_later(delay, asyncio.ensure_future, late)
            raise StoreUnavailableError("applied later")
        done = await super().commit(compares, operations)
        self.rejected += not done.succeeded
        return done

    async def range(self, prefix):
        await self._check_available()
        return await super().range(prefix)

    async def watch(self, prefix, after_revision):
        news = self.watch_gate
        async with aclosing(super().watch(prefix, after_revision)) as lists:
            async for events in lists:
                if news is not None:
                    await news.wait()
                yield events

    async def _check_available(self) -> None:
        await self.open.wait()
        if self.is_unavailable:
            raise StoreUnavailableError("unavailable")

    def cut_after(self, commits: int) -> "CutStore":
        """A connection that is cut after some commits."""
        return CutStore(self, commits)

    async def stored(self) -> dict[str, bytes]:
        """All stored records of groups."""
        entries = (await super().range(keys.CONSUMERS)).entries
        return {entry.key: entry.value for entry in entries}


class CutStore:
    """A connection to a store; nothing arrives after the last commit."""

    def __init__(self, store: ControllableStore, commits_left: int) -> None:
        self._store = store
        self.commits_left = commits_left

    async def commit(self, compares, operations):
        if not self.commits_left:
            raise StoreUnavailableError("cut")
        self.commits_left -= 1
        return await self._store.commit(compares, operations)

    def __getattr__(self, name):
        return getattr(self._store, name)


class Node:
    """One broker, as far as groups are concerned."""

    def __init__(self, store: MetadataStore, topic_store: TopicStore, broker_id: int) -> None:
        self.store = store
        self.broker_id = broker_id
        self.lease_is_valid = True
        self.shards = Shards(
            store,
            PausableClock(virtual_time.clock_ms, virtual_time.clock_ms),
            broker_id=broker_id,
            linger_ms=5,
            random=Random(0),
            lease_is_valid=lambda: self.lease_is_valid,
        )
        self.groups = Coordinator(
            self.shards,
            topic_store,
            GroupSettings(initial_rebalance_delay_ms=0),
            OFFSETS,
            Metrics(),
        )

    async def open_shards_of(self, *group_ids: str) -> None:
        """Become the owner of the shards of these groups."""
        shards = [shard_of(group_id) for group_id in group_ids]
        await self.shards.open(await assign_shards(self.store, self.broker_id, 1, shards))

    def commit(
        self, offset: int, group_id: str = GROUP, partition: int = 0, topic_id: bytes = TOPIC_ID
    ) -> Awaitable[None]:
        """Commit as a consumer that assigns partitions to itself."""
        committed = CommittedOffset(
            offset=offset, committed_ms=virtual_time.clock_ms(), topic_id=topic_id
        )
        return self.groups.commit(
            group_id,
            "",
            None,
            -1,
            {(TOPIC, partition): committed},
            version_knows_missing_groups=True,
        )

    async def commit_in_transaction(
        self,
        producer_id: int,
        offsets: dict[int, int],
        *,
        group_id: str = GROUP,
        epoch: int = 0,
        topic_id: bytes = TOPIC_ID,
        metadata: str = "",
    ) -> None:
        """Commit offsets by partition, in a transaction that its coordinator confirms."""
        guard = self.groups.start_verification(group_id, producer_id, epoch, adds_partition=False)
        committed_ms = virtual_time.clock_ms()
        await self.groups.commit_in_transaction(
            group_id,
            "",
            None,
            -1,
            producer_id=producer_id,
            producer_epoch=epoch,
            offsets={
                (TOPIC, partition): CommittedOffset(
                    offset=offset, committed_ms=committed_ms, topic_id=topic_id, metadata=metadata
                )
                for partition, offset in offsets.items()
            },
            guard=guard,
        )

    def end(
        self,
        producer_id: int,
        *,
        is_commit: bool = True,
        group_id: str = GROUP,
        epoch: int = 0,
        coordinator_epoch: int = 0,
    ) -> Awaitable[None]:
        """Write the marker of a transaction to the shard of a group."""
        return self.groups.write_markers(
            shard_of(group_id),
            producer_id,
            epoch,
            is_commit=is_commit,
            coordinator_epoch=coordinator_epoch,
        )

    def unstable(self, group_id: str = GROUP) -> set[int]:
        """Partitions with pending offsets."""
        return {partition for _, partition in self.groups.unstable_offsets(group_id)}

    def committed(self, group_id: str = GROUP) -> dict[int, int]:
        """Offsets by partition."""
        fetched = self.groups.fetch(group_id, None, -1)
        return {
            topic_partition[1]: committed.offset for topic_partition, committed in fetched.items()
        }


class Cluster:
    """A store, and the nodes that use it; each has its own topic store."""

    def __init__(self) -> None:
        self.store = ControllableStore()
        self.topic_stores: list[TopicStore] = []
        self._running: list[asyncio.Task[None]] = []

    async def node(self, store: MetadataStore | None = None) -> Node:
        """A node; `store` is its connection, if it is another one than that of tests."""
        topic_store = TopicStore(self.store)
        await topic_store.start()
        self.topic_stores.append(topic_store)
        if len(self.topic_stores) == 1:
            await topic_store.create(TOPIC, 3, {}, virtual_time.clock_ms(), TOPIC_ID)
        node = Node(store or self.store, topic_store, len(self.topic_stores))
        await node.groups.start()
        self._running.append(asyncio.create_task(node.shards.writer.run()))
        self._running.append(asyncio.create_task(node.groups.run()))
        return node

    async def close(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.wait(self._running)
        for topic_store in self.topic_stores:
            await topic_store.close()


def simulate(body: Callable[[Cluster], Awaitable[None]]) -> None:
    async def scenario(_random: Random) -> None:
        cluster = Cluster()
        try:
            await body(cluster)
        finally:
            await cluster.close()

    virtual_time.run(scenario, seed=0)


class ClassicMember:
    """A member of a classic group, which follows the responses."""

    def __init__(self, name: str, instance_id: str | None = None) -> None:
        self.name = name
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1

    async def join(self, node: Node, group_id: str = GROUP) -> Joined:
        joined = await node.groups.join(
            group_id,
            Join(
                reply_token=NO_REPLY_TOKEN,
                member_id=self.member_id,
                new_member_id=f"{self.name}-id",
                instance_id=self.instance_id,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=SESSION_MS,
                protocol_type="consumer",
                protocols=(("range", b"subscription"),),
            ),
        )
        self.member_id, self.generation = joined.member_id, joined.generation
        return joined

    async def sync(self, node: Node, assignments: dict[str, bytes]) -> bytes:
        synced = await node.groups.sync(
            GROUP,
            Sync(
                reply_token=NO_REPLY_TOKEN,
                member_id=self.member_id,
                instance_id=self.instance_id,
                generation=self.generation,
                assignments=assignments,
            ),
        )
        return synced.assignment

    async def heartbeat(self, node: Node) -> None:
        await node.groups.heartbeat(
            GROUP,
            Heartbeat(
                reply_token=NO_REPLY_TOKEN,
                member_id=self.member_id,
                instance_id=self.instance_id,
                generation=self.generation,
            ),
        )


async def stabilize(node: Node, *members: ClassicMember) -> None:
    """Bring members into one stable generation, each assigned its own name."""
    joined = await asyncio.gather(*(member.join(node) for member in members))
    assignments = {member.member_id: member.name.encode() for member in members}
    leads = [each.leader == each.member_id for each in joined]
    synced = await asyncio.gather(
        *(
            member.sync(node, assignments if leads_it else {})
            for member, leads_it in zip(members, leads, strict=True)
        )
    )
    assert synced == [member.name.encode() for member in members]


class ConsumerMember:
    """A member of a group of the consumer protocol."""

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.epoch = 0

    async def heartbeat(self, node: Node, *, joins: bool = False) -> Reconciled:
        outcomes = await node.groups.consumer_heartbeat(
            GROUP,
            ConsumerHeartbeat(
                reply_token=NO_REPLY_TOKEN,
                member_id=self.member_id,
                member_epoch=self.epoch,
                rebalance_timeout_ms=SESSION_MS if joins else -1,
                subscribed_names=(TOPIC,) if joins else None,
                owned={} if joins else None,
            ),
        )
        self.epoch = outcomes.member_epoch
        return outcomes
