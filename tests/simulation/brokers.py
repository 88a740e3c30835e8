"""A simulated broker: an engine that can crash, stop, be suspended, and start further sessions."""

import asyncio
import inspect
from collections import defaultdict
from contextlib import suppress
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from doubles import virtual_time
from doubles.faulty_object_store import FaultyObjectStore
from kafscale.broker.cluster.partition_state_store import PartitionStateStore
from kafscale.metadata.cluster.ownership_guard import OwnershipGuards
from kafscale.metadata.schema.model import PartitionState
from kafscale.storage.engine import EngineSettings, StorageEngine
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.objects.layers.retrying import RetryingObjectStore
from simulation.features import Feature
from simulation.metadata import MetadataConnection
from simulation.model import NAMESPACE, InvariantViolationError, SimulatedTopic

if TYPE_CHECKING:
    from simulation.cluster import Owner, SimulatedCluster

_CHECKS_LEASE = "is_lease_valid" in inspect.signature(StorageEngine).parameters


class Broker:
    """One process, which may have several broker sessions."""

    def __init__(
        self,
        cluster: "SimulatedCluster",
        broker_id: int,
        store: FaultyObjectStore,
        settings: EngineSettings,
    ) -> None:
        self.id = broker_id
        self.store = store
        self.metadata = MetadataConnection(cluster.metadata)
        self.epoch = -1
        self.has_lease = True
        """Whether the broker can know that no other one has taken over."""
        self.clock_offset_ms = 0
        """How far the wall clock of the broker is ahead."""
        self.ended = asyncio.Event()
        """Set when the process has ended."""
        self._cluster = cluster
        self._background: asyncio.Task[None] | None = None
        self._saves: dict[PartitionLog, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._guards = OwnershipGuards(self.metadata)
        topics: Any = SimpleNamespace(by_id=cluster.metadata.topics)
        self._states = PartitionStateStore(self.metadata, topics, self._guards, clock=self.clock_ms)
        random = Random(cluster.random.getrandbits(32))
        retrying = RetryingObjectStore(store, attempts_max=random.randint(1, 4), random=random)
        optional: dict[str, Any] = (
            {"is_lease_valid": lambda: self.has_lease} if _CHECKS_LEASE else {}
        )
        self.engine = StorageEngine(
            retrying,
            NAMESPACE,
            broker_id,
            settings,
            save_state=self._save_state,
            clock=self.clock_ms,
            random=random,
            **optional,
        )

    def __repr__(self) -> str:
        return f"<Broker {self.id} epoch {self.epoch}>"

    def clock_ms(self) -> int:
        """The broker's wall clock."""
        return virtual_time.clock_ms() + self.clock_offset_ms

    async def start_session(self) -> None:
        """Start a session with a new epoch."""
        self.has_lease = True
        self.epoch = self._cluster.allocate_epoch(await self.engine.newest_epoch() + 1)
        await self.engine.start_session(self.epoch)
        if self._background is None:
            self._background = asyncio.create_task(self.engine.run())

    async def open(self, partitions: "list[tuple[SimulatedTopic, int]]") -> None:
        """Open the logs of partitions that are assigned to this broker."""
        to_open = []
        for topic, number in partitions:
            owner = self._cluster.owners[topic.id, number]
            state = await self._load_state(topic, number)
            self._guards.add(owner.assignment)
            to_open.append(self._cluster.to_open(topic, number, state))
        await self.engine.open(to_open)

    async def _load_state(self, topic: SimulatedTopic, number: int) -> PartitionState | None:
        record = self._cluster.metadata.topics[topic.id]
        return (await self._states.load(record, [number])).get(number)

    async def _save_state(self, log: PartitionLog) -> None:
        if Feature.CONCURRENT_SAVES in self._cluster.features:
            await self._states.save(log)
        else:
            async with self._saves[log]:
                await self._states.save(log)

    def drop(self, owner: "Owner") -> None:
        """Forget a partition that another broker owns now."""
        assignment = owner.assignment
        topic_partition = (assignment.topic, assignment.partition)
        guard = self._guards.get(topic_partition)
        if guard is not None and guard.assignment.leader_epoch == assignment.leader_epoch:
            self._guards.remove(topic_partition)
            self._states.forget(topic_partition)

    def end_session(self) -> None:
        """Notice that another broker has taken over."""
        self.engine.end_session()
        self._guards.clear()
        self._states.clear()

    def suspend(self) -> None:
        """Stop between two instructions; what was about to be sent is sent after `resume`."""
        if self.store.resumed is None:
            self.store.resumed = self.metadata.resumed = asyncio.Event()

    def resume(self) -> None:
        if self.store.resumed is not None:
            self.store.resumed.set()
            self.store.resumed = self.metadata.resumed = None

    async def crash(self) -> None:
        """End at once: writes in flight may or may not arrive."""
        self.ended.set()
        self.engine.close()
        await self._end_background()

    async def stop(self) -> None:
        """Shut down in an orderly way."""
        await self._end_background()
        await self.engine.stop(flush_seconds=30, roll_seconds=30)
        self.ended.set()

    async def _end_background(self) -> None:
        if self._background is not None:
            if self._background.done():
                self._background.result()
                raise InvariantViolationError("the engine's background task has ended")
            self._background.cancel()
            with suppress(asyncio.CancelledError):
                await self._background
