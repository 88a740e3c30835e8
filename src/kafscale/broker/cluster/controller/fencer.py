"""Fencer: ends the WAL streams of lost brokers, so that they can no longer write.

Invariants: an owner is fenced only after the store has confirmed that its session is over, since
the cache may not yet show a broker that has just registered. Each owner is retried on its own until
its fence is in the object store. Fences are remembered for one term only: the next controller
fences again, which is idempotent.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final, TypeVar

from kafscale.aio.backoff import Backoff
from kafscale.broker.cluster.controller.plan.planner import Owner
from kafscale.errors import OperatingError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_broker
from kafscale.metadata.store.base import MetadataStore
from kafscale.observability.logging import get_logger
from kafscale.storage.wal.streams import Streams

logger = get_logger(__name__)

RETRY_SECONDS_MAX: Final = 2.0
"""Its partitions are not served meanwhile: once the store recovers, fencing must follow soon."""

CACHE_DELAY_SECONDS: Final = 0.2
"""How long the cache may take to show a broker that the store has already."""

Result = TypeVar("Result")


class Fencer:
    """The fences of one term; runs in the given TaskGroup."""

    def __init__(
        self,
        store: MetadataStore,
        streams: Streams,
        tasks: asyncio.TaskGroup,
        *,
        random: Random,
        on_fenced: Callable[[], None],
    ) -> None:
        """`on_fenced` is called whenever an owner was fenced, or turned out to be alive."""
        self._store = store
        self._streams = streams
        self._tasks = tasks
        self._random = random
        self._on_fenced = on_fenced
        self._in_progress: set[Owner] = set()
        self.fenced: set[Owner] = set()

    def start(self, owner: Owner, partitions: int) -> None:
        """Fence an owner that seems to be lost and owns this number of partitions."""
        if owner not in self._in_progress:
            self._in_progress.add(owner)
            self._tasks.create_task(self._fence(owner, partitions))

    async def _fence(self, owner: Owner, partitions: int) -> None:
        broker_id, epoch = owner
        if await self._retry(owner, self._session_ended):
            logger.warning("broker lost", broker_id=broker_id, epoch=epoch, partitions=partitions)
            await self._retry(owner, self._streams.fence)
            self.fenced.add(owner)
        else:
            await asyncio.sleep(CACHE_DELAY_SECONDS)
        self._in_progress.discard(owner)
        self._on_fenced()

    async def _session_ended(self, broker_id: int, epoch: int) -> bool:
        entry = await self._store.get(keys.broker(broker_id))
        return entry is None or decode_broker(entry).epoch > epoch

    async def _retry(self, owner: Owner, call: Callable[[int, int], Awaitable[Result]]) -> Result:
        """Call with an owner until it succeeds."""
        broker_id, epoch = owner
        backoff = Backoff(self._random)
        while True:
            try:
                return await call(broker_id, epoch)
            except OperatingError as error:
                logger.warning(
                    "broker not fenced yet",
                    broker_id=broker_id,
                    epoch=epoch,
                    reason=str(error),
                    tries=backoff.tries + 1,
                )
            except Exception:
                # A boundary: whatever fails for one stream, its partitions must not be given up.
                logger.exception("broker fencing failed", broker_id=broker_id, epoch=epoch)
            await asyncio.sleep(min(backoff.next_seconds(), RETRY_SECONDS_MAX))
