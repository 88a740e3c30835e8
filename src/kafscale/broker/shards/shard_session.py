"""Shard sessions: the periods in which this broker serves a coordinator shard, under one guard.

Invariants:

1. Writes of a session reach the store while its ownership guard holds, or never; its waiters learn
   which.
2. Of several values for one key only the newest is written. An operation may be built when the
   batch is taken. If that fails, or the store cannot hold the value, the error is logged, the other
   keys are written, and who waits for this key learns that it is not in the store.
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
from typing import TYPE_CHECKING, Final, NamedTuple

from kafscale.broker.shards.pending_replies import WRITE_SECONDS_MAX, in_time
from kafscale.errors import (
    CoordinatorLoadingError,
    CoordinatorUnavailableError,
    KafscaleError,
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
OnLost = Callable[[KafscaleError], object]

CALLBACKS_CHECKED_MIN: Final = 1_000
"""With fewer callbacks than this, none is dropped."""


class _Callbacks(NamedTuple):
    """What to call at the end of the writes up to now."""

    on_durable: OnDurable
    on_lost: OnLost
    key: str | None
    """The key that the waiter depends on, if any."""
    is_waiting: Callable[[], bool] | None
    """Whether there is still a waiter; None if there always is."""


class _Waiters:
    """Callbacks in order.

    In an outage, requests time out and are repeated for hours: callbacks without a waiter are
    dropped whenever the number of callbacks has doubled.
    """

    __slots__ = ("_callbacks", "_checked_at")

    def __init__(self) -> None:
        self._callbacks: list[_Callbacks] = []
        self._checked_at = CALLBACKS_CHECKED_MIN

    def __iter__(self) -> Iterator[_Callbacks]:
        return iter(self._callbacks)

    def __len__(self) -> int:
        return len(self._callbacks)

    def add(self, callbacks: _Callbacks) -> None:
        self._callbacks.append(callbacks)
        if len(self._callbacks) >= self._checked_at:
            self._callbacks = [
                each for each in self._callbacks if each.is_waiting is None or each.is_waiting()
            ]
            self._checked_at = max(2 * len(self._callbacks), CALLBACKS_CHECKED_MIN)


class RecordNotSavedError(KafscaleError):
    """The store cannot hold the newest value of a key."""


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
        "_unsaved",
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
        self._unsaved: set[str] = set()
        """Keys whose newest value could not be written, and never will be."""
        self._pending_callbacks = _Waiters()
        """Callbacks for the pending writes."""
        self._in_flight_callbacks: _Waiters | None = None
        """Callbacks for the writes in flight; None if there are none."""
        self._end_error: NotCoordinatorError | None = None

    @property
    def has_ended(self) -> bool:
        return self.phase is Phase.ENDED

    @property
    def pending_count(self) -> int:
        """How many keys wait to be written."""
        return len(self._pending)

    @property
    def callback_count(self) -> int:
        """How many callbacks wait for writes."""
        return len(self._pending_callbacks) + len(self._in_flight_callbacks or ())

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

    def when_durable(
        self,
        on_durable: OnDurable,
        on_lost: OnLost = lambda _error: None,
        *,
        key: str | None = None,
        is_waiting: Callable[[], bool] | None = None,
    ) -> None:
        """Call `on_durable` once all writes up to now are in the store; at once, if they are.

        If the session ends before, call `on_lost` instead. With `key`, also if its value is one
        that the store cannot hold: without it, the caller does not depend on any single one. Once
        `is_waiting` returns false, neither may be called.
        """
        callbacks = _Callbacks(on_durable, on_lost, key, is_waiting)
        if self._end_error is not None:
            on_lost(self._end_error)
        elif self._pending:
            self._pending_callbacks.add(callbacks)
        elif self._in_flight_callbacks is not None:
            self._in_flight_callbacks.add(callbacks)
        else:
            self._call_back(callbacks)

    def wait_durable(self, seconds: float = WRITE_SECONDS_MAX) -> Awaitable[None]:
        """Like `when_durable`, with a timeout; the writes continue after it.

        It covers the writes up to this call, not up to the await.
        """
        return _wait_outcome(seconds, self._outcome())

    async def wait_written(self) -> None:
        """Wait until all writes up to now are in the store, or the session has ended."""
        await self._outcome()

    def _outcome(self) -> asyncio.Future[KafscaleError | None]:
        outcome: asyncio.Future[KafscaleError | None] = asyncio.get_running_loop().create_future()
        self.when_durable(
            partial(_resolve, outcome, None),
            partial(_resolve, outcome),
            is_waiting=lambda: not outcome.done(),
        )
        return outcome

    # --- for the writer -------------------------------------------------------------------------

    def take_batch(self) -> list[list[Operation]]:
        """Take the pending operations to write them; those of one list are written together."""
        pending, self._pending = self._pending, {}
        sets, self._pending_sets = self._pending_sets, {}
        self._in_flight_callbacks, self._pending_callbacks = self._pending_callbacks, _Waiters()
        batch: dict[str, list[Operation]] = {}
        for key, pending_operation in pending.items():
            self._unsaved.discard(key)
            operation = _build(key, pending_operation)
            if operation is None:
                self._unsaved.add(key)
            else:
                batch.setdefault(sets.get(key, key), []).append(operation)
        return list(batch.values())

    def on_refused(self, key: str) -> None:
        """The store cannot hold the value of this key in the last batch."""
        self._unsaved.add(key)

    def on_written(self) -> None:
        """The last batch is in the store, except for what it cannot hold."""
        in_flight, self._in_flight_callbacks = self._in_flight_callbacks, None
        for callbacks in in_flight or ():
            self._call_back(callbacks)

    def _call_back(self, callbacks: _Callbacks) -> None:
        if callbacks.key in self._unsaved:
            callbacks.on_lost(
                RecordNotSavedError(f"the metadata store cannot hold the record {callbacks.key}")
            )
        else:
            callbacks.on_durable()

    # --- end ------------------------------------------------------------------------------------

    def end(self, error: NotCoordinatorError) -> None:
        """Discard pending writes, and notify their waiters."""
        self.phase = Phase.ENDED
        self._end_error = error
        self._pending.clear()
        self._pending_sets.clear()
        self.drop_log()
        callbacks = [*(self._in_flight_callbacks or ()), *self._pending_callbacks]
        self._in_flight_callbacks, self._pending_callbacks = None, _Waiters()
        for each in callbacks:
            each.on_lost(error)

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


def _resolve(outcome: asyncio.Future[KafscaleError | None], error: KafscaleError | None) -> None:
    # A waiter that was cancelled is done already.
    if not outcome.done():
        outcome.set_result(error)


async def _wait_outcome(seconds: float, outcome: asyncio.Future[KafscaleError | None]) -> None:
    if (error := await in_time(outcome, seconds)) is not None:
        raise error
