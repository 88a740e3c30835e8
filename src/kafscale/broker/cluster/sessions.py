"""The sessions of a broker: it joins the cluster, serves, and rejoins after it was fenced.

Invariants: a broker session ends when its lease is lost, or when another broker has fenced its WAL
stream. The broker then releases everything at once, and starts the next session with a new epoch
and without any partitions. If another process has taken over the same broker id, this process
stops, also if that process uses other metadata and shares only the bucket. It also stops if the
metadata was restored from a snapshot while it ran (`RestoreGuard`).

If the store's epoch counter is behind the bucket, the broker marks the metadata as restored, unless
they are marked already.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from kafscale.aio.backoff import Backoff
from kafscale.broker.cluster.controller.controller import Controller
from kafscale.broker.cluster.ownership import Ownership
from kafscale.broker.cluster.registration import Registration
from kafscale.errors import FencedError, OperatingError
from kafscale.metadata.cluster import id_allocator
from kafscale.metadata.cluster.restore_marker import find_pending_restore, mark_restored
from kafscale.metadata.store.base import MetadataStore
from kafscale.observability.logging import get_logger
from kafscale.storage.engine import StorageEngine

logger = get_logger(__name__)


class BrokerSessions:
    """Starts and ends the sessions of this broker."""

    def __init__(
        self,
        store: MetadataStore,
        storage: StorageEngine,
        registration: Registration,
        controller: Controller,
        ownership: Ownership,
        *,
        broker_id: int,
        clock: Callable[[], int],
        random: Random,
    ) -> None:
        self._store = store
        self._storage = storage
        self._registration = registration
        self._controller = controller
        self._ownership = ownership
        self._broker_id = broker_id
        self._clock = clock
        self._random = random

    async def start(self) -> int:
        """Join the cluster, as soon as its stores allow it; return the epoch of the session."""
        backoff = Backoff(self._random)
        while True:
            try:
                return await self._start_session()
            except OperatingError as error:
                logger.warning("not joined yet", reason=str(error))
                self.end_session()
                await self._registration.deregister()
                await asyncio.sleep(backoff.next_seconds())

    async def _start_session(self) -> int:
        # First, because a session fences the WAL streams of all earlier ones.
        await self._registration.wait_until_free()
        epoch = await self._allocate_epoch()
        await self._registration.restore_guard.check()
        await self._storage.start_session(epoch)
        broker = await self._registration.register(epoch)
        self._ownership.start_session(broker)
        self._controller.start_session(broker)
        logger.info("broker joined", broker_id=self._broker_id, epoch=epoch)
        return epoch

    async def _allocate_epoch(self) -> int:
        """Allocate an epoch that is new in the metadata and in the bucket, which may be newer."""
        name = id_allocator.broker_epoch_counter(str(self._broker_id))
        # Read the bucket first: every epoch that it shows by then was allocated before.
        newest = await self._storage.newest_epoch()
        allocated = await id_allocator.peek(self._store, name)
        if (
            allocated is not None
            and allocated <= newest
            and not await find_pending_restore(self._store)
        ):
            logger.error("metadata is older than the bucket", epoch=allocated, newest_epoch=newest)
            await mark_restored(self._store, restored_at_ms=self._clock())
        return await id_allocator.allocate(self._store, name, above=newest)

    async def run(self) -> None:
        """Run session after session; cancel it to stop.

        Raises `FencedError` if another process has taken over this broker id.
        """
        while True:
            await self._wait_for_session_end()
            self.end_session()
            await self._check_not_superseded()
            await self._registration.deregister()
            await self.start()

    def end_session(self) -> None:
        """Release everything at once."""
        self._controller.end_session()
        self._ownership.end_session()
        self._storage.end_session()

    async def _wait_for_session_end(self) -> None:
        lease = asyncio.create_task(self._registration.keep_alive_until_lost())
        endings: set[asyncio.Future[Any]] = {lease, self._storage.wal.fenced}
        try:
            await asyncio.wait(endings, return_when=asyncio.FIRST_COMPLETED)
        finally:
            lease.cancel()
            await asyncio.gather(lease, return_exceptions=True)
        if self._storage.wal.fenced.done():
            logger.warning("fenced by another broker", broker_id=self._broker_id)

    async def _check_not_superseded(self) -> None:
        """Raise `FencedError` if another process is this broker now; retry until that is known."""
        assert self._registration.broker is not None
        epoch = self._registration.broker.epoch
        backoff = Backoff(self._random)
        while True:
            try:
                await self._registration.check_not_superseded()
                if await self._storage.newest_epoch() > epoch:
                    raise FencedError(
                        f"another process runs as broker {self._broker_id}, with the same bucket"
                        " and other metadata; this one stops"
                    )
            except OperatingError:
                await asyncio.sleep(backoff.next_seconds())
            else:
                return
