"""The writer of groups: what many groups want written goes to the store in shared transactions.

The laws: what is asked for in a tenure is written in the order in which it was asked for. Every
transaction compares the claims of all shards that it touches: what a shard's next owner has read is
not changed behind its back. Where a compare does not hold, the claims are asked about; shards that
are lost are left out, and the others are written all the same. A store that fails is asked again
until it succeeds: nothing is skipped, and what waits meanwhile is bounded by the number of keys.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

from kafscale.aio.backoff import Backoff
from kafscale.broker.group_coordinator.pausable_clock import GroupClock
from kafscale.broker.group_coordinator.shard_session import Tenure
from kafscale.errors import CoordinatorUnavailableError, FencedError, OperatingError
from kafscale.metadata.store.base import (
    COMMIT_BYTES_MAX,
    OPERATIONS_MAX,
    MetadataStore,
    Operation,
    Put,
)
from kafscale.observability.logging import get_logger

log = get_logger(__name__)

SLOW_SECONDS: Final = 1.0
"""After so long without success, those who wait for the store are no longer expected to speak."""

SLOW_STORE: Final = "the store is slow"


class Write(NamedTuple):
    """One operation, and in whose name it is made."""

    tenure: Tenure
    operation: Operation


class GroupWriter:
    """Gathers writes for a moment, and sends them together."""

    def __init__(
        self,
        store: MetadataStore,
        clock: GroupClock,
        *,
        linger_ms: int,
        random: Random,
        lost: Callable[[Tenure], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._linger_seconds = linger_ms / 1000
        self._random = random
        self._lost = lost
        """Ends a tenure whose claim does not hold any more."""
        self._asking: dict[Tenure, None] = {}
        """Which tenures have something to be written, in the order in which they came."""
        self._sending: dict[Tenure, None] = {}
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._again = asyncio.Event()
        self.transactions = 0
        """How many were written since the start."""

    async def run(self) -> None:
        """Write whatever comes; cancel it to stop."""
        while True:
            await self._wake.wait()
            await _wait_for(self._hurry, self._linger_seconds)
            self._wake.clear()
            self._sending, self._asking = self._asking, {}
            await self._send(
                [
                    Write(tenure, operation)
                    for tenure in self._sending
                    for operation in tenure.depart()
                ]
            )
            sent, self._sending = self._sending, {}
            for tenure in sent:
                tenure.arrive()

    async def finish(self, seconds: float) -> None:
        """Write what is left without further waiting, while `run` still runs."""
        self._hurry.set()
        pending = {**self._sending, **self._asking}
        ends = await asyncio.gather(
            *(tenure.durable_within(seconds) for tenure in pending), return_exceptions=True
        )
        if any(isinstance(end, CoordinatorUnavailableError) for end in ends):
            log.error("groups not saved", keys=sum(each.asked_count for each in self._asking))

    def rouse(self, tenure: Tenure) -> None:
        """Take note that something of this tenure is to be written."""
        self._asking[tenure] = None
        self._wake.set()

    def try_again(self) -> None:
        """Do not wait for the next try: the store is known to answer, or less is to be written."""
        self._again.set()

    # --- to the store ---------------------------------------------------------------------------

    async def _send(self, writes: list[Write]) -> None:
        fitting = [write for write in writes if _fits(write.operation)]
        while fitting:
            count = _count_fitting(fitting)
            await self._commit(fitting[:count])
            fitting = fitting[count:]

    async def _commit(self, writes: list[Write]) -> None:
        slow = asyncio.get_running_loop().call_later(SLOW_SECONDS, self._clock.stop, SLOW_STORE)
        try:
            await self._commit_patiently(writes)
        finally:
            slow.cancel()
            self._clock.go_on(SLOW_STORE)

    async def _commit_patiently(self, writes: list[Write]) -> None:
        backoff = Backoff(self._random)
        while ours := [write for write in writes if not write.tenure.is_over]:
            try:
                if await self._try_commit(ours):
                    return
            except OperatingError as error:
                log.warning("groups not saved yet", reason=str(error), tries=backoff.tries + 1)
                self._again.clear()
                await _wait_for(self._again, backoff.next_seconds())

    async def _try_commit(self, writes: list[Write]) -> bool:
        """Whether it was made; if not, it is known now which shards are still ours."""
        tenures = dict.fromkeys(write.tenure for write in writes)
        done = await self._store.commit(
            [tenure.guard.compare for tenure in tenures], [write.operation for write in writes]
        )
        if done.succeeded:
            self.transactions += 1
        else:
            await asyncio.gather(*(self._renew(tenure) for tenure in tenures))
        return done.succeeded

    async def _renew(self, tenure: Tenure) -> None:
        try:
            await tenure.guard.refresh()
        except FencedError:
            self._lost(tenure)


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    """Wait, but not for longer than this."""
    if not seconds:
        return
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


def _size_bytes(operation: Operation) -> int:
    return len(operation.key) + len(operation.value) if isinstance(operation, Put) else 0


def _fits(operation: Operation) -> bool:
    """Whether the store can take it at all: if not, the group lives on, but only in memory."""
    if _size_bytes(operation) <= COMMIT_BYTES_MAX:
        return True
    assert isinstance(operation, Put)
    log.error("group too large to be saved", key=operation.key, size_bytes=len(operation.value))
    return False


def _count_fitting(writes: list[Write]) -> int:
    """How many of them go into one transaction: at least one."""
    size_bytes = 0
    for count, write in enumerate(writes[:OPERATIONS_MAX]):
        size_bytes += _size_bytes(write.operation)
        if size_bytes > COMMIT_BYTES_MAX:
            return count
    return min(len(writes), OPERATIONS_MAX)
