"""A simulated broker: an engine that can crash, stop, and start further sessions."""

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from doubles.faulty_object_store import FaultyObjectStore
from doubles.virtual_time import clock_ms
from kafscale.errors import StoreUnavailableError
from kafscale.storage.engine import EngineSettings, StorageEngine
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.objects.layers.retrying import RetryingObjectStore
from simulation.model import NAMESPACE, InvariantViolationError

if TYPE_CHECKING:
    from simulation.cluster import SimulatedCluster


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
        self.epoch = -1
        self.ended = asyncio.Event()
        """Set when the process has ended."""
        self._cluster = cluster
        self._background: asyncio.Task[None] | None = None
        random = Random(cluster.random.getrandbits(32))
        retrying = RetryingObjectStore(store, retries_max=random.randint(0, 3), random=random)
        self.engine = StorageEngine(
            retrying,
            NAMESPACE,
            broker_id,
            settings,
            save_state=self._save_state,
            clock=clock_ms,
            random=random,
        )

    def __repr__(self) -> str:
        return f"<Broker {self.id} epoch {self.epoch}>"

    async def start_session(self) -> None:
        """Start a session with a new epoch."""
        self.epoch = self._cluster.allocate_epoch(await self.engine.newest_epoch() + 1)
        await self.engine.start_session(self.epoch)
        if self._background is None:
            self._background = asyncio.create_task(self.engine.run())

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

    async def _save_state(self, partition: PartitionLog) -> None:
        """Save a partition state; the metadata store may fail before or after the write."""
        cluster = self._cluster
        await asyncio.sleep(cluster.random.choice((0, 0.01)))
        self._fail_sometimes()
        cluster.save_state(self, partition)
        self._fail_sometimes()

    def _fail_sometimes(self) -> None:
        if self._cluster.random.random() < self._cluster.metadata_failing_share / 2:
            raise StoreUnavailableError("the metadata store is unavailable, on purpose")
