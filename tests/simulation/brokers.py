"""A simulated broker: an engine that lives, dies, sleeps, and may live again."""

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from kafscale.errors import StoreUnavailableError
from kafscale.storage.engine import EngineSettings, StorageEngine
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.testing.faulty_object_store import FaultyObjectStore
from kafscale.testing.virtual_time import clock_ms
from simulation.model import NAMESPACE, BrokenPromiseError

if TYPE_CHECKING:
    from simulation.world import World


class Broker:
    """One process, which may have several lives, one after the other."""

    def __init__(
        self, world: "World", broker_id: int, store: FaultyObjectStore, settings: EngineSettings
    ) -> None:
        self.id = broker_id
        self.store = store
        self.epoch = -1
        self.ended = asyncio.Event()
        """Set when the process is gone."""
        self._world = world
        self._background: asyncio.Task[None] | None = None
        self.engine = StorageEngine(
            store,
            NAMESPACE,
            broker_id,
            settings,
            save=self._save,
            clock=clock_ms,
            random=Random(world.random.getrandbits(32)),
        )

    def __repr__(self) -> str:
        return f"<Broker {self.id} epoch {self.epoch}>"

    async def begin(self) -> None:
        """Begin a life under a new epoch."""
        self.epoch = self._world.take_epoch(await self.engine.newest_epoch() + 1)
        await self.engine.begin_session(self.epoch)
        if self._background is None:
            self._background = asyncio.create_task(self.engine.run())

    async def crash(self) -> None:
        """End at once: what is on its way may have arrived, or may not."""
        self.ended.set()
        self.engine.close()
        await self._end_background()

    async def stop(self) -> None:
        """End in good order."""
        await self._end_background()
        await self.engine.stop(flush_seconds=30, roll_seconds=30)
        self.ended.set()

    async def _end_background(self) -> None:
        if self._background is not None:
            if self._background.done():
                self._background.result()
                raise BrokenPromiseError("the engine's work has ended by itself")
            self._background.cancel()
            with suppress(asyncio.CancelledError):
                await self._background

    async def _save(self, partition: PartitionLog) -> None:
        """Have the metadata store remember a log; it may fail before or after it has."""
        world = self._world
        await asyncio.sleep(world.random.choice((0, 0.01)))
        self._fail_sometimes()
        world.remember(self, partition)
        self._fail_sometimes()

    def _fail_sometimes(self) -> None:
        if self._world.random.random() < self._world.metadata_failing_share / 2:
            raise StoreUnavailableError("the metadata store does not answer, on purpose")
