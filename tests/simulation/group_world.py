"""A coordinator that crashes, a store that fails, and what members may expect of them all the same.

The promises, which `Promises` holds the coordinator to:

1. In one generation of a classic group no partition has two owners, and a member is told one
   assignment only, the bytes of its leader; a generation that somebody was told of never begins
   again, whoever crashed.
2. In a consumer group no partition has two owners at any moment, among those who are still heard.
3. What was committed and answered is what a reader finds, unless somebody has committed since.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from kafscale.broker.coordinator.clock import GroupClock
from kafscale.broker.coordinator.coordinator import Coordinator, OffsetRetention
from kafscale.errors import StoreUnavailableError
from kafscale.groups.settings import GroupSettings
from kafscale.metadata.catalog import Catalog
from kafscale.metadata.memory import MemoryStore
from kafscale.observability.metrics import Metrics
from kafscale.testing import virtual_time
from simulation.model import BrokenPromiseError

TOPIC = "orders"
TOPIC_ID = b"orders".ljust(16, b"-")
GROUP = "readers"
SETTINGS = GroupSettings(
    initial_rebalance_delay_ms=500, consumer_session_timeout_ms=10_000,
    consumer_heartbeat_interval_ms=1_000,
)  # fmt: skip
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
        if fails:
            raise StoreUnavailableError("after")
        return done


class Life:
    """One life of a coordinator."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.running = asyncio.create_task(coordinator.run())


class Promises:
    """What was promised to whom."""

    def __init__(self) -> None:
        self.generations: dict[int, dict[str, tuple[int, ...]]] = {}
        self.handed_in: dict[int, dict[str, bytes]] = {}
        self.committed: dict[int, int] = {}
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

    def found(self, partition: int, offset: int) -> None:
        if offset < self.committed.get(partition, -1):
            raise BrokenPromiseError(f"{partition} is at {offset}, not {self.committed[partition]}")


class GroupWorld:
    """Everything that members live in."""

    def __init__(self, random: Random, partition_count: int = 6, *, is_mixed: bool = False) -> None:
        self.random = random
        self.is_mixed = is_mixed
        """Whether members of both protocols meet, so that the rules of consumer groups hold."""
        self.store = FlakyStore(random)
        self.partition_count = partition_count
        self.promises = Promises()
        self.life: Life | None = None
        self._catalog = Catalog(self.store)
        self._offsets = 0

    async def open(self) -> None:
        await self._catalog.start()
        now_ms = virtual_time.clock_ms()
        await self._catalog.create(TOPIC, self.partition_count, {}, now_ms, TOPIC_ID)
        await self.revive()

    async def close(self) -> None:
        await self.crash()
        await self._catalog.close()

    async def revive(self) -> None:
        """Begin a new life, from what the store holds."""
        assert self.life is None
        coordinator = Coordinator(
            self.store, self._catalog, SETTINGS, RETENTION, Metrics(), linger_ms=5,
            clock=GroupClock(virtual_time.clock_ms, virtual_time.clock_ms), random=self.random,
        )  # fmt: skip
        await coordinator.start()
        self.life = Life(coordinator)

    async def crash(self, *, orderly: bool = False) -> None:
        """End the life, at once or after a farewell."""
        life, self.life = self.life, None
        assert life is not None
        if orderly:
            life.coordinator.retire()
            await life.coordinator.writer.finish(60)
        life.running.cancel()
        await asyncio.wait([life.running])
        life.coordinator.retire()
        life.ended.set_result(None)

    async def call(self, ask: Callable[[Coordinator], Awaitable[Answer]]) -> Answer:
        """What the coordinator answers, as far as that gets through."""
        await self._travel()
        life = self.life
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
