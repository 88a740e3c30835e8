"""The lives of a broker: it joins the cluster, serves, and joins anew when it has been given up.

The law: a life is over when its lease is lost, or when its WAL stream has been ended by a fence:
others have taken over, or will. Then everything is let go of at once, and the next life begins with
a new epoch and owns nothing. If it was another process under the same id that took over, this one
stops for good: also one that has other metadata, and only shares the objects. And so it does if the
metadata were restored from a snapshot meanwhile (`lineage`).

A broker whose own epochs the metadata have forgotten marks them as restored, if nobody else has.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from kafscale.aio.backoff import Backoff
from kafscale.broker.cluster.controller.controller import Controller
from kafscale.broker.cluster.ownership import Ownership
from kafscale.broker.cluster.registration import Membership
from kafscale.errors import FencedError, OperatingError
from kafscale.metadata.cluster import id_allocator
from kafscale.metadata.cluster.restore_marker import find_restored, mark_restored
from kafscale.metadata.store.base import MetadataStore
from kafscale.observability.logging import get_logger
from kafscale.storage.engine import StorageEngine

log = get_logger(__name__)


class Lives:
    """Begins lives, and ends them."""

    def __init__(
        self,
        store: MetadataStore,
        storage: StorageEngine,
        membership: Membership,
        controller: Controller,
        ownership: Ownership,
        *,
        broker_id: int,
        clock: Callable[[], int],
        random: Random,
    ) -> None:
        self._store = store
        self._storage = storage
        self._membership = membership
        self._controller = controller
        self._ownership = ownership
        self._broker_id = broker_id
        self._clock = clock
        self._random = random

    async def begin(self) -> int:
        """Join the cluster; return the epoch of this life."""
        epoch = await self._new_epoch()
        await self._membership.lineage.check()
        await self._storage.begin(epoch)
        registration = await self._membership.join(epoch)
        self._ownership.begin(registration)
        self._controller.begin(registration)
        log.info("broker joined", broker_id=self._broker_id, epoch=epoch)
        return epoch

    async def _new_epoch(self) -> int:
        """An epoch that is new in the metadata and in the bucket, which may outlive them."""
        name = id_allocator.broker_epoch(str(self._broker_id))
        # The bucket first: whatever it shows by then has been counted before.
        newest = await self._storage.newest_epoch()
        counted = await id_allocator.read(self._store, name)
        if counted is not None and counted <= newest and not await find_restored(self._store):
            log.error("metadata are older than the bucket", epoch=counted, newest_epoch=newest)
            await mark_restored(
                self._store, snapshot="", taken_at_ms=0, restored_at_ms=self._clock()
            )
        return await id_allocator.next_value(self._store, name, above=newest)

    async def run(self) -> None:
        """Live on; cancel it to stop. Raises `FencedError` if another process is this broker."""
        while True:
            await self._until_over()
            self.end()
            await self._check_alone()
            await self._membership.leave()
            await self._begin_patiently()

    def end(self) -> None:
        """Let go of everything at once."""
        self._controller.end()
        self._ownership.end()

    async def _until_over(self) -> None:
        lease = asyncio.create_task(self._membership.keep())
        ends: set[asyncio.Future[Any]] = {lease, self._storage.wal.fenced}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            lease.cancel()
            await asyncio.gather(lease, return_exceptions=True)
        if self._storage.wal.fenced.done():
            log.warning("fenced by another broker", broker_id=self._broker_id)

    async def _check_alone(self) -> None:
        """Raise `FencedError` if another process is this broker now; ask until that is known."""
        assert self._membership.registration is not None
        epoch = self._membership.registration.epoch
        backoff = Backoff(self._random)
        while True:
            try:
                await self._membership.check_alone()
                if await self._storage.newest_epoch() > epoch:
                    raise FencedError(
                        f"another broker has taken over as broker {self._broker_id}, with the same"
                        " objects and other metadata; this one stops"
                    )
            except OperatingError:
                await asyncio.sleep(backoff.next_seconds())
            else:
                return

    async def _begin_patiently(self) -> None:
        backoff = Backoff(self._random)
        while True:
            try:
                await self.begin()
            except OperatingError as error:
                log.warning("not joined yet", reason=str(error))
                self.end()
                await self._membership.leave()
                await asyncio.sleep(backoff.next_seconds())
            else:
                return
