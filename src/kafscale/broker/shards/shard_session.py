"""Shard sessions: the periods in which this broker serves a coordinator shard, under one guard.

Invariants:

1. Writes of a session reach the store while its ownership guard holds, or never; its waiters learn
   which.
2. Of several values for one key only the newest is written. An operation may be built when the
   batch is taken; if that fails, the error is logged, and the other keys are written.
3. Keys that are written together are in the store together, or not yet: with the values that they
   had then, or newer ones.
4. A session that has ended stays so. The same shard may return, but in another session, which knows
   nothing of this one.
5. A shard has at most one session. A group or transactional id is served while the session of its
   shard is serving and the broker's lease is valid, so that no other broker can own the shard.

`writer` sends the writes to the store; `shards` starts and ends sessions.
"""

import asyncio
import enum
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from kafscale.broker.shards.pending_replies import WRITE_SECONDS_MAX, in_time
from kafscale.errors import (
    CoordinatorLoadingError,
    CoordinatorUnavailableError,
    NotCoordinatorError,
)
from kafscale.metadata.cluster.ownership_guard import OwnershipGuard
from kafscale.metadata.schema.model import shard_of
from kafscale.metadata.store.base import Operation
from kafscale.observability.logging import get_logger

if TYPE_CHECKING:
    from kafscale.broker.group_coordinator.shard_log import ShardLog

logger = get_logger(__name__)

OperationFactory = Callable[[], Operation]
"""Builds the operation of a key from its newest value."""

PendingOperation = Operation | OperationFactory

OnDurable = Callable[[], object]
OnLost = Callable[[NotCoordinatorError], object]


class Phase(enum.Enum):
    """The phase of a shard session."""

    LOADING = "loading"
    """Its groups, offsets and transactions are being loaded."""
    SERVING = "serving"
    RELEASING = "releasing"
    """Requests are rejected; pending writes are completed."""
    ENDED = "ended"


class ShardSession:
    """One owned shard: its ownership guard, and its pending writes."""

    __slots__ = (
        "_end_error",
        "_in_flight_callbacks",
        "_pending",
        "_pending_callbacks",
        "_pending_sets",
        "_schedule",
        "guard",
        "log",
        "phase",
        "shard",
    )

    def __init__(
        self, shard: int, guard: OwnershipGuard, schedule: Callable[["ShardSession", bool], None]
    ) -> None:
        self.shard = shard
        self.guard = guard
        self.phase = Phase.LOADING
        self.log: ShardLog | None = None
        """The log for readers of `__consumer_offsets`, if any; the writer appends to it."""
        self._schedule = schedule
        """Schedules this session with the writer, with or without the linger time."""
        self._pending: dict[str, PendingOperation] = {}
        self._pending_sets: dict[str, str] = {}
        """The keys that are written together, each with the first key of its set."""
        self._pending_callbacks: list[tuple[OnDurable, OnLost]] = []
        """Callbacks for the pending writes."""
        self._in_flight_callbacks: list[tuple[OnDurable, OnLost]] | None = None
        """Callbacks for the writes in flight; None if there are none."""
        self._end_error: NotCoordinatorError | None = None

    @property
    def has_ended(self) -> bool:
        return self.phase is Phase.ENDED

    @property
    def pending_count(self) -> int:
        """How many keys wait to be written."""
        return len(self._pending)

    # --- for coordinators -----------------------------------------------------------------------

    def write(self, operations: Mapping[str, PendingOperation], *, lingers: bool = True) -> None:
        """Write these keys; a pending write of a key is replaced by the newer value.

        Without `lingers`, the store gets them as soon as it has responded to what it is writing.
        """
        if not self.has_ended:
            self._pending.update(operations)
            self._schedule(self, lingers)

    def write_together(self, operations: Mapping[str, Operation]) -> bool:
        """Write these keys in one commit of the store, into which they must fit.

        False, and nothing is written, if a key waits to be written together with others.
        """
        if not self._pending_sets.keys().isdisjoint(operations):
            return False
        if not self.has_ended:
            self._pending_sets.update(dict.fromkeys(operations, next(iter(operations))))
            self.write(operations)
        return True

    def when_durable(self, on_durable: OnDurable, on_lost: OnLost = lambda _error: None) -> None:
        """Call `on_durable` once all writes up to now are in the store; at once, if they are.

        If the session ends before, call `on_lost` instead.
        """
        if self._end_error is not None:
            on_lost(self._end_error)
        elif self._pending:
            self._pending_callbacks.append((on_durable, on_lost))
        elif self._in_flight_callbacks is not None:
            self._in_flight_callbacks.append((on_durable, on_lost))
        else:
            on_durable()

    def wait_durable(self, seconds: float = WRITE_SECONDS_MAX) -> Awaitable[None]:
        """Like `when_durable`, with a timeout; the writes continue after it.

        It covers the writes up to this call, not up to the await.
        """
        return _wait_outcome(seconds, self._outcome())

    async def wait_written(self) -> None:
        """Wait until all writes up to now are in the store, or the session has ended."""
        await self._outcome()

    def _outcome(self) -> asyncio.Future[NotCoordinatorError | None]:
        outcome: asyncio.Future[NotCoordinatorError | None]
        outcome = asyncio.get_running_loop().create_future()
        self.when_durable(partial(_resolve, outcome, None), partial(_resolve, outcome))
        return outcome

    # --- for the writer -------------------------------------------------------------------------

    def take_batch(self) -> list[list[Operation]]:
        """Take the pending operations to write them; those of one list are written together."""
        pending, self._pending = self._pending, {}
        sets, self._pending_sets = self._pending_sets, {}
        self._in_flight_callbacks, self._pending_callbacks = self._pending_callbacks, []
        batch: dict[str, list[Operation]] = {}
        for key, pending_operation in pending.items():
            operation = _build(key, pending_operation)
            if operation is not None:
                batch.setdefault(sets.get(key, key), []).append(operation)
        return list(batch.values())

    def on_written(self) -> None:
        """The last batch is in the store."""
        callbacks, self._in_flight_callbacks = self._in_flight_callbacks or [], None
        for on_durable, _ in callbacks:
            on_durable()

    # --- end ------------------------------------------------------------------------------------

    def end(self, error: NotCoordinatorError) -> None:
        """Discard pending writes, and notify their waiters."""
        self.phase = Phase.ENDED
        self._end_error = error
        self._pending.clear()
        self._pending_sets.clear()
        self.drop_log()
        callbacks = [*(self._in_flight_callbacks or ()), *self._pending_callbacks]
        self._in_flight_callbacks, self._pending_callbacks = None, []
        for _, on_lost in callbacks:
            on_lost(error)

    def drop_log(self) -> None:
        log, self.log = self.log, None
        if log is not None:
            log.close()


class ShardSessions:
    """All sessions of this broker, by shard."""

    def __init__(self, lease_is_valid: Callable[[], bool]) -> None:
        self._lease_is_valid = lease_is_valid
        self._by_shard: dict[int, ShardSession] = {}

    def __iter__(self) -> Iterator[ShardSession]:
        return iter(list(self._by_shard.values()))

    def get(self, shard: int) -> ShardSession | None:
        return self._by_shard.get(shard)

    def get_by_id(self, name: str) -> ShardSession | None:
        """The session of the shard of a group id or transactional id."""
        return self._by_shard.get(shard_of(name))

    def add(self, session: ShardSession) -> None:
        assert session.shard not in self._by_shard, session.shard
        self._by_shard[session.shard] = session

    def remove(self, session: ShardSession) -> None:
        removed = self._by_shard.pop(session.shard)
        assert removed is session, session.shard

    def require(self, name: str) -> ShardSession:
        """The session of a group or transactional id that can be served now; raises if none can."""
        return self._require(self.get_by_id(name), f"the coordinator of {name!r}")

    def require_shard(self, shard: int) -> ShardSession:
        """The session of a shard that can be served now; raises if it cannot."""
        return self._require(self.get(shard), f"the coordinator of shard {shard}")

    def _require(self, session: ShardSession | None, what: str) -> ShardSession:
        if session is None or session.phase is Phase.RELEASING or not self._lease_is_valid():
            raise NotCoordinatorError(f"this broker is not {what}")
        if session.phase is Phase.LOADING:
            raise CoordinatorLoadingError(f"{what} is loading")
        return session

    def check_all_loaded(self) -> None:
        """Raise a retriable error unless all shards of this broker are loaded."""
        if not self._lease_is_valid():
            raise CoordinatorUnavailableError(
                "the lease of this broker is not confirmed; try again"
            )
        if any(session.phase is Phase.LOADING for session in self._by_shard.values()):
            raise CoordinatorLoadingError("shards are being loaded")


def _build(key: str, operation: PendingOperation) -> Operation | None:
    if not callable(operation):
        return operation
    try:
        return operation()
    except Exception:
        # A boundary: one record that cannot be encoded must not stop the writes of the others.
        logger.exception("record not saved", key=key)
        return None


def _resolve(
    outcome: asyncio.Future[NotCoordinatorError | None], error: NotCoordinatorError | None
) -> None:
    # A waiter that was cancelled is done already.
    if not outcome.done():
        outcome.set_result(error)


async def _wait_outcome(
    seconds: float, outcome: asyncio.Future[NotCoordinatorError | None]
) -> None:
    if (error := await in_time(outcome, seconds)) is not None:
        raise error
