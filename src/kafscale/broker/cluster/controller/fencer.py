"""Fencing: makes sure that brokers which are lost write nothing any more.

The laws: an owner is fenced only after the store has said that it is over, since a view may not yet
show who has just come. An object store that fails is asked again, for each owner on its own, until
the fence stands. Which fences stand is remembered for one controller's term only: the next makes
sure again, which does no harm.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final, Protocol, TypeVar

from kafscale.aio.backoff import Backoff
from kafscale.broker.cluster.controller.plan.planner import Owner
from kafscale.errors import OperatingError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_broker
from kafscale.metadata.store.base import MetadataStore
from kafscale.observability.logging import get_logger

log = get_logger(__name__)

PAUSE_SECONDS_MAX: Final = 2.0
"""Partitions are not served meanwhile: when the store is back, it must not be missed for long."""

LATE_SECONDS: Final = 0.2
"""What a view is given to show a broker that the store knows already."""

Answer = TypeVar("Answer")


class Fencer(Protocol):
    """Ends the WAL streams of brokers."""

    async def fence(self, broker_id: int, epoch: int) -> None:
        """Put a fence at the end of a stream, unless there is one."""


class Fencing:
    """The fences of one term; work is done in the given group of tasks."""

    def __init__(
        self,
        store: MetadataStore,
        streams: Fencer,
        tasks: asyncio.TaskGroup,
        *,
        random: Random,
        fenced: Callable[[], None],
    ) -> None:
        """`fenced` is called whenever another owner is fenced, or turns out to be alive."""
        self._store = store
        self._streams = streams
        self._tasks = tasks
        self._random = random
        self._tell = fenced
        self._under_way: set[Owner] = set()
        self.fenced: set[Owner] = set()

    def begin(self, owner: Owner, partitions: int) -> None:
        """Have an owner fenced that seems to be over and to leave so many partitions."""
        if owner not in self._under_way:
            self._under_way.add(owner)
            self._tasks.create_task(self._fence(owner, partitions))

    async def _fence(self, owner: Owner, partitions: int) -> None:
        broker_id, epoch = owner
        if await self._patiently(owner, self._is_over):
            log.warning("broker lost", broker_id=broker_id, epoch=epoch, partitions=partitions)
            await self._patiently(owner, self._streams.fence)
            self.fenced.add(owner)
        else:
            await asyncio.sleep(LATE_SECONDS)
        self._under_way.discard(owner)
        self._tell()

    async def _is_over(self, broker_id: int, epoch: int) -> bool:
        entry = await self._store.get(keys.broker(str(broker_id)))
        return entry is None or decode_broker(entry).epoch > epoch

    async def _patiently(
        self, owner: Owner, ask: Callable[[int, int], Awaitable[Answer]]
    ) -> Answer:
        """Ask about an owner until there is an answer."""
        broker_id, epoch = owner
        backoff = Backoff(self._random)
        while True:
            try:
                return await ask(broker_id, epoch)
            except OperatingError as error:
                log.warning(
                    "broker not fenced yet",
                    broker_id=broker_id,
                    epoch=epoch,
                    reason=str(error),
                    tries=backoff.tries + 1,
                )
            except Exception:
                # An edge: whatever one stream has, its partitions must not be given up.
                log.exception("broker not fenced", broker_id=broker_id, epoch=epoch)
            await asyncio.sleep(min(backoff.next_seconds(), PAUSE_SECONDS_MAX))
