"""The writer of groups: what many groups want written goes to the store in shared transactions.

The laws: what is asked for is written in the order in which it was asked for, and of several values
for one key only the newest. `when_durable` calls back when everything that was asked for before it
is in the store. A store that fails is asked again until it succeeds: nothing is skipped, and what
waits meanwhile is bounded by the number of keys. A write is made from what it is about at the
moment when it leaves, so that a record which changes ten times while the store is busy is encoded
once.
"""

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from kafscale.broker.coordinator.clock import GroupClock
from kafscale.errors import CoordinatorUnavailableError, OperatingError
from kafscale.metadata.store import (
    COMMIT_BYTES_MAX,
    OPERATIONS_MAX,
    MetadataStore,
    Operation,
    Put,
)
from kafscale.observability.logging import get_logger
from kafscale.storage.backoff import Backoff

log = get_logger(__name__)

Making = Callable[[], Operation]
"""Makes an operation of the key's newest value, when its time has come."""

Done = Callable[[], object]

SLOW_SECONDS: Final = 1.0
"""After so long without success, those who wait for the store are no longer expected to speak."""


class GroupWriter:
    """Gathers writes for a moment, and sends them together."""

    def __init__(
        self, store: MetadataStore, clock: GroupClock, *, linger_ms: int, random: Random
    ) -> None:
        self._store = store
        self._clock = clock
        self._linger_seconds = linger_ms / 1000
        self._random = random
        self._asked: dict[str, Making] = {}
        self._waiting: list[Done] = []
        """Who waits for what was asked for."""
        self._leaving: list[Done] | None = None
        """Who waits for what is on its way; None where nothing is."""
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self.transactions = 0
        """How many were written since the start."""

    async def run(self) -> None:
        """Write whatever comes; cancel it to stop."""
        while True:
            await self._wake.wait()
            await self._linger()
            self._wake.clear()
            asked, self._asked = self._asked, {}
            self._leaving, self._waiting = self._waiting, []
            await self._send([make() for make in asked.values()])
            arrived, self._leaving = self._leaving, None
            for done in arrived:
                done()

    async def finish(self, seconds: float) -> None:
        """Write what is left without further waiting, while `run` still runs."""
        self._hurry.set()
        try:
            await self.durable_within(seconds)
        except CoordinatorUnavailableError:
            log.error("groups not saved", keys=len(self._asked))  # noqa: TRY400

    def write(self, operations: Mapping[str, Making]) -> None:
        """Have these keys written; those that wait already get the newer value."""
        self._asked.update(operations)
        self._wake.set()

    def when_durable(self, done: Done) -> None:
        """Call `done` once all that was asked for up to now is in the store; at once, if it is."""
        if self._asked:
            self._waiting.append(done)
        elif self._leaving is not None:
            self._leaving.append(done)
        else:
            done()

    async def durable_within(self, seconds: float) -> None:
        """The same, to be awaited by somebody who cannot wait for ever; the writing goes on."""
        arrived = asyncio.Event()
        self.when_durable(arrived.set)
        try:
            async with asyncio.timeout(seconds):
                await arrived.wait()
        except TimeoutError as error:
            raise CoordinatorUnavailableError("the metadata store is slow; try again") from error

    async def _linger(self) -> None:
        """Give others the time to come along, unless everything has to end."""
        if not self._linger_seconds:
            return
        try:
            async with asyncio.timeout(self._linger_seconds):
                await self._hurry.wait()
        except TimeoutError:
            return

    async def _send(self, operations: list[Operation]) -> None:
        fitting = [operation for operation in operations if _fits(operation)]
        while fitting:
            count = _count_fitting(fitting)
            await self._commit(fitting[:count])
            fitting = fitting[count:]

    async def _commit(self, operations: list[Operation]) -> None:
        slow = asyncio.get_running_loop().call_later(SLOW_SECONDS, self._clock.stop)
        try:
            await self._commit_patiently(operations)
        finally:
            slow.cancel()
            self._clock.go_on()

    async def _commit_patiently(self, operations: list[Operation]) -> None:
        backoff = Backoff(self._random)
        while True:
            try:
                done = await self._store.commit((), operations)
            except OperatingError as error:
                log.warning("groups not saved yet", reason=str(error), tries=backoff.tries + 1)
                await asyncio.sleep(backoff.next_seconds())
            else:
                assert done.succeeded, "nothing is compared"
                self.transactions += 1
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


def _count_fitting(operations: list[Operation]) -> int:
    """How many of them go into one transaction: at least one."""
    size_bytes = 0
    for count, operation in enumerate(operations[:OPERATIONS_MAX]):
        size_bytes += _size_bytes(operation)
        if size_bytes > COMMIT_BYTES_MAX:
            return count
    return min(len(operations), OPERATIONS_MAX)
