"""The shard writer: writes of many groups and transactions share commits of the store.

Invariants: writes of a shard session are written in order, also if a transaction that failed is
applied later (`WriteSequence`). Every transaction compares the ownership guards of all shards that
it touches: a shard's next owner never sees a write of the former owner. If a comparison fails, the
assignments are read again; lost shards are left out, and the others are written nevertheless. If
the store fails, writes are retried until they succeed: nothing is skipped but what the store can
never hold, which its session learns; and what waits meanwhile is bounded by the number of keys.
Operations that are written together share a transaction.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from random import Random
from typing import Final, NamedTuple

from kafscale.aio.backoff import Backoff
from kafscale.aio.events import wait_at_most
from kafscale.broker.shards.pausable_clock import PausableClock
from kafscale.broker.shards.shard_session import ShardSession
from kafscale.broker.shards.write_sequence import WriteSequence
from kafscale.errors import CoordinatorUnavailableError, FencedError, OperatingError
from kafscale.metadata.store.base import COMMIT_BYTES_MAX, OPERATIONS_MAX, Operation, Put
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

SLOW_SECONDS: Final = 1.0
"""After this time without success, the clock of groups is paused: members get no answer."""

SLOW_STORE: Final = "the store is slow"

WRITES_MAX: Final = OPERATIONS_MAX - 1
"""Writes in one transaction; the sequence key is put, too."""

WRITE_BYTES_MAX: Final = COMMIT_BYTES_MAX - 1_000
"""Leaves room for the sequence key."""


class Write(NamedTuple):
    """Operations that share a transaction, mostly one, and their session."""

    session: ShardSession
    operations: Sequence[Operation]


class ShardWriter:
    """Collects writes for the linger time, and sends them together."""

    def __init__(
        self,
        sequence: WriteSequence,
        clock: PausableClock,
        *,
        linger_ms: int,
        random: Random,
        on_lost: Callable[[ShardSession], None],
    ) -> None:
        self._sequence = sequence
        self._clock = clock
        self._linger_seconds = linger_ms / 1000
        self._random = random
        self._on_lost = on_lost
        """Ends a session whose ownership guard failed."""
        self._scheduled: dict[ShardSession, None] = {}
        """Sessions with pending writes, in order of arrival."""
        self._in_flight: dict[ShardSession, None] = {}
        self._wake = asyncio.Event()
        self._flush_now = asyncio.Event()
        self._is_finishing = False
        self._retry_event = asyncio.Event()
        self.transactions = 0
        """The number of transactions since the start."""

    async def run(self) -> None:
        """Write whatever is scheduled; cancel it to stop."""
        while True:
            await self._wake.wait()
            if self._linger_seconds:
                await wait_at_most(self._linger_seconds, self._flush_now)
                if not self._is_finishing:
                    self._flush_now.clear()
            self._wake.clear()
            self._in_flight, self._scheduled = self._scheduled, {}
            await self._send(
                [
                    Write(session, operations)
                    for session in self._in_flight
                    for operations in session.take_batch()
                ]
            )
            sent, self._in_flight = self._in_flight, {}
            for session in sent:
                session.on_written()

    async def finish(self, seconds: float) -> None:
        """Write what is left without lingering, while `run` still runs."""
        self._is_finishing = True
        self._flush_now.set()
        pending = {**self._in_flight, **self._scheduled}
        ends = await asyncio.gather(
            *(session.wait_durable(seconds) for session in pending), return_exceptions=True
        )
        if any(isinstance(end, CoordinatorUnavailableError) for end in ends):
            logger.error(
                "records not saved", keys=sum(each.pending_count for each in self._scheduled)
            )

    def schedule(self, session: ShardSession, lingers: bool) -> None:
        """Schedule the pending writes of a session, with or without the linger time."""
        self._scheduled[session] = None
        if not lingers:
            self._flush_now.set()
        self._wake.set()

    async def settle(self) -> None:
        """Return when no earlier write can be applied any more; may raise `OperatingError`."""
        await self._sequence.settle()

    def retry_now(self) -> None:
        """Retry without backoff: the store is known to respond, or less is to be written."""
        self._retry_event.set()

    # --- to the store ---------------------------------------------------------------------------

    async def _send(self, writes: list[Write]) -> None:
        fitting = [part for write in writes for part in _parts(write)]
        while fitting:
            count = _count_fitting(fitting)
            await self._commit(fitting[:count])
            fitting = fitting[count:]

    async def _commit(self, writes: list[Write]) -> None:
        slow = asyncio.get_running_loop().call_later(SLOW_SECONDS, self._clock.pause, SLOW_STORE)
        try:
            await self._commit_patiently(writes)
        finally:
            slow.cancel()
            self._clock.resume(SLOW_STORE)

    async def _commit_patiently(self, writes: list[Write]) -> None:
        backoff = Backoff(self._random)
        while current := [write for write in writes if not write.session.has_ended]:
            try:
                if await self._try_commit(current):
                    return
            except OperatingError as error:
                logger.warning("records not saved yet", reason=str(error), tries=backoff.tries + 1)
                self._retry_event.clear()
                await wait_at_most(backoff.next_seconds(), self._retry_event)

    async def _try_commit(self, writes: list[Write]) -> bool:
        """Whether it was committed; if not, lost sessions have been ended."""
        sessions = dict.fromkeys(write.session for write in writes)
        done = await self._sequence.commit(
            [session.guard.compare for session in sessions],
            [operation for write in writes for operation in write.operations],
        )
        if done.succeeded:
            self.transactions += 1
            for session in sessions:
                if session.log is not None:
                    own = [each.operations for each in writes if each.session is session]
                    session.log.append(done.revision, list(chain.from_iterable(own)))
        else:
            await asyncio.gather(*(self._renew(session) for session in sessions))
        return done.succeeded

    async def _renew(self, session: ShardSession) -> None:
        try:
            await session.guard.refresh()
        except FencedError:
            self._on_lost(session)


def fit_together(operations: Iterable[Operation]) -> bool:
    """Whether operations can be written together."""
    sizes = [_size_bytes(operation) for operation in operations]
    return len(sizes) <= WRITES_MAX and sum(sizes) <= WRITE_BYTES_MAX


def _parts(write: Write) -> Iterator[Write]:
    """The write; its operations one by one if they do not fit together any more."""
    if len(write.operations) > 1 and fit_together(write.operations):
        yield write
        return
    for operation in write.operations:
        if _fits(operation):
            yield Write(write.session, (operation,))
        else:
            assert isinstance(operation, Put), "nothing else has a value"
            write.session.on_refused(operation.key)


def _size_bytes(operation: Operation) -> int:
    return len(operation.key) + len(operation.value) if isinstance(operation, Put) else 0


def _fits(operation: Operation) -> bool:
    """Whether the store accepts it at all."""
    if _size_bytes(operation) <= WRITE_BYTES_MAX:
        return True
    assert isinstance(operation, Put), "nothing else has a value"
    logger.error("record too large to be saved", key=operation.key, size_bytes=len(operation.value))
    return False


def _count_fitting(writes: list[Write]) -> int:
    """How many of them fit into one transaction: at least one."""
    count = operation_count = size_bytes = 0
    for write in writes:
        operation_count += len(write.operations)
        size_bytes += sum(map(_size_bytes, write.operations))
        if operation_count > WRITES_MAX or size_bytes > WRITE_BYTES_MAX:
            break
        count += 1
    return count
