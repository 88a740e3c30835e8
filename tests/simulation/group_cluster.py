"""Coordinators that crash and take over, a faulty store, and the invariants of groups.

`GroupInvariants` checks:

1. In one generation of a classic group no partition has two owners, and a member gets one
   assignment only, the bytes of its leader; a generation that a member has seen never starts again,
   whichever broker crashed or took over.
2. In a consumer group no partition has two owners at any time, among members that are heard.
3. A committed and acknowledged offset is what a reader finds, unless there was a later commit or
   deletion, also after every commit that failed has been applied as late as it can be.

Two groups are in different shards, which move between two brokers: by transfer, by takeover from a
dead broker, or by takeover from one that has lost its lease and yet continues.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from random import Random
from typing import TypeVar

from msgspec.structs import replace

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.broker.group_coordinator.coordinator import Coordinator
from kafscale.broker.group_coordinator.group_runtime import OffsetSettings
from kafscale.broker.shards.pausable_clock import PausableClock
from kafscale.broker.shards.shards import Shards
from kafscale.errors import OperatingError, StoreUnavailableError
from kafscale.groups.group import GroupSettings
from kafscale.metadata.cluster.ownership_guard import OwnershipGuard
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_assignment, encode_assignment
from kafscale.metadata.schema.model import SHARDS_TOPIC, Assignment, shard_of
from kafscale.metadata.store.base import Put, absent, unchanged
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.metrics.broker import Metrics
from simulation.model import InvariantViolationError

TOPIC = "orders"
TOPIC_ID = b"orders".ljust(16, b"-")
GROUP = "readers"
STANDALONE_GROUP = "bystanders"
SHARDS = (shard_of(GROUP), shard_of(STANDALONE_GROUP))
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
OFFSETS = OffsetSettings(
    retention_ms=604_800_000, check_interval_ms=600_000, group_metadata_bytes_max=2**20
)

BEFORE, AFTER, LATER = OUTCOMES = ("before", "after", "later")
"""When a failed commit is applied: never, before its caller learns of the failure, or later."""

LATER_SECONDS_LOG10 = (-1.0, 4.0)
"""From 0.1 s to some hours."""

Response = TypeVar("Response")


class ConnectionLostError(Exception):
    """The broker is gone, with its response."""


class FlakyStore(MemoryStore):
    """Has latency, and fails now and then: before a commit, after it, or long before it.

    A commit that failed may be applied later, after up to some hours.
    """

    def __init__(self, random: Random) -> None:
        super().__init__(virtual_time.clock_ms)
        self._random = random
        self._late: set[asyncio.Task[None]] = set()
        self.failing = 0.0

    async def commit(self, compares, operations):
        await asyncio.sleep(self._random.uniform(0, 0.02))
        fails = self._random.random() < self.failing
        outcome = self._random.choice(OUTCOMES) if fails else AFTER
        if outcome == LATER:
            self._apply_later(partial(super().commit, compares, operations))
        if outcome != AFTER:
            raise StoreUnavailableError(outcome)
        done = await super().commit(compares, operations)
        # The response is delayed, too.
        await asyncio.sleep(self._random.uniform(0, 0.02))
        if fails:
            raise StoreUnavailableError(AFTER)
        return done

    def _apply_later(self, commit: Callable[[], Awaitable[object]]) -> None:
        delay = 10 ** self._random.uniform(*LATER_SECONDS_LOG10)

        async def apply() -> None:
            await asyncio.sleep(delay)
            await commit()

        task = asyncio.create_task(apply())
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def wait_for_late_commits(self) -> None:
        await asyncio.gather(*self._late)

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


class BrokerSession:
    """One session of a broker, as far as groups are concerned."""

    def __init__(self, cluster: "GroupCluster", node: int, epoch: int) -> None:
        self.node = node
        self.epoch = epoch
        self.lease_is_valid = True
        self.shards = Shards(
            cluster.store,
            PausableClock(virtual_time.clock_ms, virtual_time.clock_ms),
            broker_id=node,
            linger_ms=5,
            random=cluster.random,
            lease_is_valid=lambda: self.lease_is_valid,
        )
        self.coordinator = Coordinator(
            self.shards, cluster.topic_store, SETTINGS, OFFSETS, Metrics()
        )
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.shards.writer.run())
            group.create_task(self.coordinator.run())

    async def end(self) -> None:
        """End at once; responses in flight are lost."""
        self.running.cancel()
        await asyncio.wait([self.running])
        self.coordinator.shut_down()
        self.ended.set_result(None)


class GroupInvariants:
    """What was acknowledged to members."""

    def __init__(self) -> None:
        self.generations: dict[int, dict[str, tuple[int, ...]]] = {}
        self.committed: dict[tuple[str, int], int] = {}
        """By group and partition."""
        self.owners: dict[int, str] = {}

    def response(self, generation: int, member_id: str, partitions: tuple[int, ...]) -> None:
        members = self.generations.setdefault(generation, {})
        if members.setdefault(member_id, partitions) != partitions:
            raise InvariantViolationError(f"{member_id} has two assignments in {generation}")
        owned = [partition for its in members.values() for partition in its]
        if len(set(owned)) != len(owned):
            raise InvariantViolationError(f"a partition has two owners in {generation}: {members}")

    def record_owned(self, member_id: str, partitions: frozenset[int]) -> None:
        """A member of a consumer group owns exactly these from now on."""
        for partition in partitions:
            owner = self.owners.setdefault(partition, member_id)
            if owner != member_id:
                raise InvariantViolationError(f"{partition} is owned by {owner} and {member_id}")
        for partition in [p for p, its in self.owners.items() if its == member_id]:
            if partition not in partitions:
                del self.owners[partition]

    def record_commit(self, group_id: str, partition: int, offset: int) -> None:
        known = self.committed.get((group_id, partition), -1)
        self.committed[group_id, partition] = max(known, offset)

    def forget_commit(self, group_id: str, partition: int) -> None:
        """A deletion was sent: whether there is an offset is unknown until the next commit."""
        self.committed.pop((group_id, partition), None)

    def check_committed(self, group_id: str, partition: int, offset: int) -> None:
        expected = self.committed[group_id, partition]
        if offset < expected:
            raise InvariantViolationError(f"{group_id}/{partition} is at {offset}, not {expected}")


class GroupCluster:
    """The environment of the members."""

    def __init__(self, random: Random, partition_count: int = 6, *, is_mixed: bool = False) -> None:
        self.random = random
        self.is_mixed = is_mixed
        """Whether members of both protocols are in one group, so that consumer group rules
        apply.
        """
        self.store = FlakyStore(random)
        self.topic_store = TopicStore(self.store)
        self.partition_count = partition_count
        self.invariants = GroupInvariants()
        self.live_brokers: dict[int, BrokerSession] = {}
        self.owners: dict[int, BrokerSession] = {}
        """The owner of each shard, as in the store."""
        self._epochs = 0
        self._offsets = 0

    async def open(self) -> None:
        await self.topic_store.start()
        now_ms = virtual_time.clock_ms()
        await self.topic_store.create(TOPIC, self.partition_count, {}, now_ms, TOPIC_ID)
        for node in NODES:
            await self.start_broker(node)
        await self.take_over(self.random.choice(NODES), SHARDS)

    async def close(self) -> None:
        for node in list(self.live_brokers):
            await self.crash(node)
        await self.topic_store.close()

    # --- sessions -------------------------------------------------------------------------------

    async def start_broker(self, node: int) -> None:
        """Start a new session, which owns nothing yet."""
        assert node not in self.live_brokers
        self._epochs += 1
        session = self.live_brokers[node] = BrokerSession(self, node, self._epochs)
        await session.coordinator.start()

    def reregister(self, node: int) -> None:
        """A broker notices that its lease is lost, and registers again."""
        session = self.live_brokers[node]
        session.shards.drop_all()
        self._epochs += 1
        session.epoch, session.lease_is_valid = self._epochs, True

    async def crash(self, node: int, *, orderly: bool = False) -> None:
        """End a session, at once or in an orderly way."""
        session = self.live_brokers.pop(node)
        if orderly:
            session.coordinator.shut_down()
            await session.shards.writer.finish(60)
        await session.end()

    # --- shards ---------------------------------------------------------------------------------

    def owner(self, group_id: str) -> BrokerSession:
        return self.owners[shard_of(group_id)]

    def find_coordinator(self, group_id: str) -> int:
        """The broker that a client is referred to; sometimes an outdated one."""
        if self.random.random() < 0.1:
            return self.random.choice(NODES)
        return self.owner(group_id).node

    async def take_over(self, node: int, shards: Collection[int]) -> None:
        """Make a broker the owner of shards, in place of their owner, and let it serve."""
        session = self.live_brokers[node]
        guards = {shard: await self._assign_to(shard, session) for shard in shards}
        while True:
            try:
                return await session.shards.open(guards)
            except OperatingError:
                await asyncio.sleep(0.1)

    async def transfer(self, node: int, shards: Collection[int]) -> None:
        """Move shards in an orderly way, as the controller requests from their owner."""
        [owner] = {self.owners[shard] for shard in shards}
        for shard in shards:
            requested = await self._assign(shard, lambda it: replace(it, reassigning_to=node))
            if self.random.random() < 0.5:
                owner.shards.update(shard, requested)
        await asyncio.sleep(self.random.uniform(0, 1))
        await owner.shards.release(shards)
        await self.take_over(node, shards)

    async def _assign_to(self, shard: int, session: BrokerSession) -> OwnershipGuard:
        def to_session(before: Assignment) -> Assignment:
            if (before.broker_id, before.broker_epoch) == (session.node, session.epoch):
                return before
            return replace(
                before,
                broker_id=session.node,
                broker_epoch=session.epoch,
                reassigning_to=None,
                leader_epoch=before.leader_epoch + 1,
            )

        guard = OwnershipGuard(self.store, await self._assign(shard, to_session))
        self.owners[shard] = session
        return guard

    async def _assign(self, shard: int, change: Callable[[Assignment], Assignment]) -> Assignment:
        """Change an assignment, with retries until it is as desired."""
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

    async def call(
        self, node: int, request: Callable[[Coordinator], Awaitable[Response]]
    ) -> Response:
        """The response of a coordinator, unless the connection is lost."""
        await self._network_delay()
        session = self.live_brokers.get(node)
        if session is None:
            raise ConnectionLostError
        response = asyncio.ensure_future(request(session.coordinator))
        # A member that is killed meanwhile never retrieves the response.
        response.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({response, session.ended}, return_when=asyncio.FIRST_COMPLETED)
        if session.ended.done():
            response.cancel()
            raise ConnectionLostError
        await self._network_delay()
        return response.result()

    def next_offset(self) -> int:
        """A number above all before, so that readers can distinguish old from new."""
        self._offsets += 1
        return self._offsets

    async def _network_delay(self) -> None:
        await asyncio.sleep(self.random.uniform(0, 0.01))
