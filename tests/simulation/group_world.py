"""Coordinators that crash and take over, a store that fails, and what members may expect of them.

The promises, which `Promises` holds the coordinator to:

1. In one generation of a classic group no partition has two owners, and a member is told one
   assignment only, the bytes of its leader; a generation that somebody was told of never begins
   again, whoever crashed or has taken over.
2. In a consumer group no partition has two owners at any moment, among those who are still heard.
3. What was committed and answered is what a reader finds, unless somebody has committed since.

Two groups live in shards of their own, which move between two brokers: handed over, taken over from
one that is dead, or from one that is not, cannot prove its lease any more, and yet goes on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from random import Random
from typing import TypeVar

from msgspec.structs import replace

from kafscale.broker.group_coordinator.coordinator import Coordinator, OffsetRetention
from kafscale.broker.group_coordinator.pausable_clock import GroupClock
from kafscale.errors import OperatingError, StoreUnavailableError
from kafscale.groups.config import GroupSettings
from kafscale.metadata.cluster.group_shards import SHARDS_TOPIC, shard_of
from kafscale.metadata.cluster.ownership_guard import OwnershipGuard
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_assignment, encode_assignment
from kafscale.metadata.schema.model import Assignment
from kafscale.metadata.store.base import Put, absent, unchanged
from kafscale.metadata.store.memory import MemoryStore
from kafscale.metadata.topics.catalog import Catalog
from kafscale.observability.metrics.broker import Metrics
from kafscale.testing import virtual_time
from simulation.model import BrokenPromiseError

TOPIC = "orders"
TOPIC_ID = b"orders".ljust(16, b"-")
GROUP = "readers"
BYSTANDERS = "bystanders"
SHARDS = (shard_of(GROUP), shard_of(BYSTANDERS))
NODES = (0, 1)
UNASSIGNED = Assignment(
    topic=SHARDS_TOPIC,
    partition=0,
    broker_id=-1,
    broker_epoch=-1,
    leader_epoch=-1,
    fully_rolled=False,
)
SETTINGS = GroupSettings(
    initial_rebalance_delay_ms=500,
    consumer_session_timeout_ms=10_000,
    consumer_heartbeat_interval_ms=1_000,
)
RETENTION = OffsetRetention(retention_ms=604_800_000, check_interval_ms=600_000)

Answer = TypeVar("Answer")


class ConnectionLostError(Exception):
    """The broker is gone, with the answer."""


class FlakyStore(MemoryStore):
    """Takes its time, and fails now and then, before a commit or after it."""

    def __init__(self, random: Random) -> None:
        super().__init__(virtual_time.clock_ms)
        self._random = random
        self.failing = 0.0

    async def commit(self, compares, operations):
        await asyncio.sleep(self._random.uniform(0, 0.02))
        fails = self._random.random() < self.failing
        if fails and self._random.random() < 0.5:
            raise StoreUnavailableError("before")
        done = await super().commit(compares, operations)
        # The answer takes its time, too, and the world goes on meanwhile.
        await asyncio.sleep(self._random.uniform(0, 0.02))
        if fails:
            raise StoreUnavailableError("after")
        return done

    async def get(self, key):
        await self._read()
        return await super().get(key)

    async def range(self, prefix):
        await self._read()
        return await super().range(prefix)

    async def _read(self):
        await asyncio.sleep(self._random.uniform(0, 0.02))
        if self._random.random() < self.failing:
            raise StoreUnavailableError("not read")


class Life:
    """One life of a broker, as far as groups are concerned."""

    def __init__(self, world: "GroupWorld", node: int, epoch: int) -> None:
        self.node = node
        self.epoch = epoch
        self.is_proven = True
        self.coordinator = Coordinator(
            world.store,
            world.catalog,
            SETTINGS,
            RETENTION,
            Metrics(),
            linger_ms=5,
            clock=GroupClock(virtual_time.clock_ms, virtual_time.clock_ms),
            random=world.random,
            lease_is_valid=lambda: self.is_proven,
        )
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.running = asyncio.create_task(self.coordinator.run())

    async def end(self) -> None:
        """End at once; answers that are under way are lost."""
        self.running.cancel()
        await asyncio.wait([self.running])
        self.coordinator.shut_down()
        self.ended.set_result(None)


class Promises:
    """What was promised to whom."""

    def __init__(self) -> None:
        self.generations: dict[int, dict[str, tuple[int, ...]]] = {}
        self.handed_in: dict[int, dict[str, bytes]] = {}
        self.committed: dict[tuple[str, int], int] = {}
        """By group and partition."""
        self.owners: dict[int, str] = {}

    def told(self, generation: int, member_id: str, partitions: tuple[int, ...]) -> None:
        members = self.generations.setdefault(generation, {})
        if members.setdefault(member_id, partitions) != partitions:
            raise BrokenPromiseError(f"{member_id} has two assignments in {generation}")
        owned = [partition for its in members.values() for partition in its]
        if len(set(owned)) != len(owned):
            raise BrokenPromiseError(f"a partition has two owners in {generation}: {members}")

    def owns(self, member_id: str, partitions: frozenset[int]) -> None:
        """A member of a consumer group holds exactly these from now on."""
        for partition in partitions:
            owner = self.owners.setdefault(partition, member_id)
            if owner != member_id:
                raise BrokenPromiseError(f"{partition} is owned by {owner} and {member_id}")
        for partition in [p for p, its in self.owners.items() if its == member_id]:
            if partition not in partitions:
                del self.owners[partition]

    def has_committed(self, group_id: str, partition: int, offset: int) -> None:
        known = self.committed.get((group_id, partition), -1)
        self.committed[group_id, partition] = max(known, offset)

    def check_committed(self, group_id: str, partition: int, offset: int) -> None:
        wanted = self.committed[group_id, partition]
        if offset < wanted:
            raise BrokenPromiseError(f"{group_id}/{partition} is at {offset}, not {wanted}")


class GroupWorld:
    """Everything that members live in."""

    def __init__(self, random: Random, partition_count: int = 6, *, is_mixed: bool = False) -> None:
        self.random = random
        self.is_mixed = is_mixed
        """Whether members of both protocols meet, so that the rules of consumer groups hold."""
        self.store = FlakyStore(random)
        self.catalog = Catalog(self.store)
        self.partition_count = partition_count
        self.promises = Promises()
        self.lives: dict[int, Life] = {}
        self.owners: dict[int, Life] = {}
        """Who owns each shard, by the word of the store."""
        self._epochs = 0
        self._offsets = 0

    async def open(self) -> None:
        await self.catalog.start()
        now_ms = virtual_time.clock_ms()
        await self.catalog.create(TOPIC, self.partition_count, {}, now_ms, TOPIC_ID)
        for node in NODES:
            await self.revive(node)
        await self.take(self.random.choice(NODES), SHARDS)

    async def close(self) -> None:
        for node in list(self.lives):
            await self.crash(node)
        await self.catalog.close()

    # --- lives ----------------------------------------------------------------------------------

    async def revive(self, node: int) -> None:
        """Begin a new life, which owns nothing yet."""
        assert node not in self.lives
        self._epochs += 1
        life = self.lives[node] = Life(self, node, self._epochs)
        await life.coordinator.start()

    def renew(self, node: int) -> None:
        """Have a broker notice that its lease is lost, and register anew."""
        life = self.lives[node]
        life.coordinator.drop_shards()
        self._epochs += 1
        life.epoch, life.is_proven = self._epochs, True

    async def crash(self, node: int, *, orderly: bool = False) -> None:
        """End a life, at once or after a farewell."""
        life = self.lives.pop(node)
        if orderly:
            life.coordinator.shut_down()
            await life.coordinator.writer.finish(60)
        await life.end()

    # --- shards ---------------------------------------------------------------------------------

    def owner(self, group_id: str) -> Life:
        return self.owners[shard_of(group_id)]

    def look_up(self, group_id: str) -> int:
        """Which broker a client is told to ask; now and then the news is old."""
        if self.random.random() < 0.1:
            return self.random.choice(NODES)
        return self.owner(group_id).node

    async def take(self, node: int, shards: Collection[int]) -> None:
        """Make a broker the owner of shards, whatever their owner says, and have it serve."""
        life = self.lives[node]
        guards = {shard: await self._claim(shard, life) for shard in shards}
        while True:
            try:
                return await life.coordinator.open_shards(guards)
            except OperatingError:
                await asyncio.sleep(0.1)

    async def hand_over(self, node: int, shards: Collection[int]) -> None:
        """Move shards in an orderly manner, as a controller asks their one owner to."""
        [owner] = {self.owners[shard] for shard in shards}
        for shard in shards:
            asked = await self._assign(shard, lambda it: replace(it, reassigning_to=node))
            if self.random.random() < 0.5:
                owner.coordinator.update_guard(shard, asked)
        await asyncio.sleep(self.random.uniform(0, 1))
        await owner.coordinator.release_shards(shards)
        await self.take(node, shards)

    async def _claim(self, shard: int, life: Life) -> OwnershipGuard:
        def to_life(before: Assignment) -> Assignment:
            if (before.broker_id, before.broker_epoch) == (life.node, life.epoch):
                return before
            return replace(
                before,
                broker_id=life.node,
                broker_epoch=life.epoch,
                reassigning_to=None,
                leader_epoch=before.leader_epoch + 1,
            )

        guard = OwnershipGuard(self.store, await self._assign(shard, to_life))
        self.owners[shard] = life
        return guard

    async def _assign(self, shard: int, change: Callable[[Assignment], Assignment]) -> Assignment:
        """Change an assignment; it is done once there is nothing to be changed any more."""
        key = keys.assignment(SHARDS_TOPIC, shard)
        while True:
            try:
                entry = await self.store.get(key)
                before = decode_assignment(entry) if entry else UNASSIGNED
                after = change(before)
                if after == before:
                    return before
                put = Put(key, encode_assignment(replace(after, partition=shard)))
                await self.store.commit([unchanged(entry) if entry else absent(key)], [put])
            except OperatingError:
                await asyncio.sleep(0.1)

    # --- requests -------------------------------------------------------------------------------

    async def call(self, node: int, ask: Callable[[Coordinator], Awaitable[Answer]]) -> Answer:
        """What a coordinator answers, as far as that gets through."""
        await self._travel()
        life = self.lives.get(node)
        if life is None:
            raise ConnectionLostError
        answer = asyncio.ensure_future(ask(life.coordinator))
        # Whoever is killed meanwhile does not look at the answer, and that is no fault.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({answer, life.ended}, return_when=asyncio.FIRST_COMPLETED)
        if life.ended.done():
            answer.cancel()
            raise ConnectionLostError
        await self._travel()
        return answer.result()

    def next_offset(self) -> int:
        """A number above all before, so that readers can tell old from new."""
        self._offsets += 1
        return self._offsets

    async def _travel(self) -> None:
        await asyncio.sleep(self.random.uniform(0, 0.01))
