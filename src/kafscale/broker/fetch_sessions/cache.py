"""Incremental fetch sessions (KIP-227): requests and responses carry only what has changed.

Without a session, a consumer of a thousand partitions would name all of them in every fetch and get
a result for each, though few have changed. In a session the broker remembers the partitions and
what it sent last; requests then name changes only, and so do responses.

Invariants:

1. Sessions are optional: without one, or if the cache is full, every response is complete. A client
   whose session is not found (error 70), has another epoch (71) or identifies topics differently
   (106) starts a new one.
2. The number of sessions and of their partitions is bounded. A full cache evicts as Kafka's does:
   the session that was idle for longest, if it was idle for `EVICTION_MS`; else the smallest
   session of at least that age, if the new one is no smaller.

The handler reads the partitions, in three steps:

    context = sessions.begin(request, version, now_ms)
    results = [read(partition) for partition in context.partitions]  # Without waiting, if none.
    response = context.build_response(results, now_ms)

`session` decides which results have changed.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from kafscale.broker.fetch_sessions.session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    CachedPartition,
    FetchSession,
    Key,
    group_by_topic,
    requested_partitions,
)
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.fetch import FetchedPartition, FetchRequest, FetchResponse

__all__ = ["CachedPartition", "FetchContext", "FetchSessionCache"]

SLOTS_MAX: Final = 1000
"""Kafka's max.incremental.fetch.session.cache.slots."""
PARTITIONS_COUNT_MAX: Final = 500_000
"""How many partitions all sessions may have together; a few hundred bytes each."""
EVICTION_MS: Final = 120_000
"""A session idle for this long may be evicted; one younger than this only if it is idle."""

NO_SESSION_ID: Final = 0
TOPIC_IDS_SINCE: Final = 13


class FetchContext(Protocol):
    """One fetch: the partitions to read, and the response."""

    partitions: Sequence[CachedPartition]

    def build_response(self, results: Sequence[FetchedPartition], now_ms: int) -> FetchResponse:
        """The response, from one result for each of `partitions`, in their order."""


class FetchSessionCache:
    """The sessions of one broker, longest idle first."""

    def __init__(
        self,
        new_id: Callable[[], int],
        *,
        slots_max: int = SLOTS_MAX,
        partitions_count_max: int = PARTITIONS_COUNT_MAX,
        eviction_ms: int = EVICTION_MS,
    ) -> None:
        """`new_id` returns an unpredictable number from 1 to 2^31 - 1."""
        self._new_id = new_id
        self._slots_max = slots_max
        self._partitions_count_max = partitions_count_max
        self._eviction_ms = eviction_ms
        self._sessions: dict[int, FetchSession] = {}
        self.partitions_count = 0
        """How many partitions all sessions have together."""

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest, version: int, now_ms: int) -> FetchContext:
        """Find the session of a request, if it has one, and the partitions to read."""
        by_topic_id = version >= TOPIC_IDS_SINCE
        if request.session_epoch in {INITIAL_EPOCH, FINAL_EPOCH}:
            # A full fetch ends the session that it names, and may begin another one.
            self._remove(request.session_id)
            partitions = requested_partitions(request.topics, by_topic_id=by_topic_id)
            if request.session_epoch == INITIAL_EPOCH and partitions:
                return _Full(self, partitions, by_topic_id=by_topic_id)
            return _Sessionless(partitions)
        session = self._sessions.get(request.session_id)
        if session is None:
            return _SessionError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return _SessionError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_topic_id != by_topic_id:
            return _SessionError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return self._resume(session, request, now_ms)

    def _resume(self, session: FetchSession, request: FetchRequest, now_ms: int) -> FetchContext:
        # Removed and added again at the end: it is the last one used.
        self._remove(session.id)
        session.advance(request.topics, request.topics_to_forget, now_ms)
        if not session.partitions:
            return _Sessionless({})
        if self.partitions_count + len(session) > self._partitions_count_max:
            return _SessionError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        self._add(session)
        return _Incremental(session)

    def create(
        self, partitions: dict[Key, CachedPartition], *, by_topic_id: bool, now_ms: int
    ) -> FetchSession | None:
        """A new session of these partitions, or None if the cache is full."""
        if len(self._sessions) >= self._slots_max and not self._evict(len(partitions), now_ms):
            return None
        if self.partitions_count + len(partitions) > self._partitions_count_max:
            return None
        session_id = self._new_id()
        while session_id in self._sessions:
            session_id = self._new_id()
        assert session_id > NO_SESSION_ID
        session = FetchSession(session_id, partitions, by_topic_id=by_topic_id, now_ms=now_ms)
        self._add(session)
        return session

    def _evict(self, partitions_count: int, now_ms: int) -> bool:
        """Evict a session for a new one of this size, if the rules allow it.

        If none is idle, this scans all sessions, whose number is bounded by the slots.
        """
        victim = next(iter(self._sessions.values()))
        if now_ms - victim.used_ms <= self._eviction_ms:
            old = [s for s in self._sessions.values() if now_ms - s.created_ms > self._eviction_ms]
            if not old:
                return False
            victim = min(old, key=len)
            if len(victim) > partitions_count:
                return False
        self._remove(victim.id)
        return True

    def _add(self, session: FetchSession) -> None:
        self._sessions[session.id] = session
        self.partitions_count += len(session)

    def _remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partitions_count -= len(session)


class _SessionError:
    """A fetch with a session error."""

    __slots__ = ("error", "partitions")

    def __init__(self, error: ErrorCode) -> None:
        self.error = error
        self.partitions: Sequence[CachedPartition] = ()

    def build_response(self, results: Sequence[FetchedPartition], now_ms: int) -> FetchResponse:  # noqa: ARG002
        assert not results
        return FetchResponse(error_code=self.error)


class _Sessionless:
    """A fetch without a session."""

    __slots__ = ("partitions",)

    def __init__(self, partitions: dict[Key, CachedPartition]) -> None:
        self.partitions: Sequence[CachedPartition] = list(partitions.values())

    def build_response(self, results: Sequence[FetchedPartition], now_ms: int) -> FetchResponse:  # noqa: ARG002
        return FetchResponse(topics=group_by_topic(zip(self.partitions, results, strict=True)))


class _Full:
    """A full fetch that begins a session."""

    __slots__ = ("_by_key", "_by_topic_id", "_sessions", "partitions")

    def __init__(
        self,
        sessions: FetchSessionCache,
        partitions: dict[Key, CachedPartition],
        *,
        by_topic_id: bool,
    ) -> None:
        self._sessions = sessions
        self._by_key = partitions
        self._by_topic_id = by_topic_id
        self.partitions: Sequence[CachedPartition] = list(partitions.values())

    def build_response(self, results: Sequence[FetchedPartition], now_ms: int) -> FetchResponse:
        pairs = list(zip(self.partitions, results, strict=True))
        response = FetchResponse(topics=group_by_topic(pairs))
        session = self._sessions.create(self._by_key, by_topic_id=self._by_topic_id, now_ms=now_ms)
        if session is not None:
            session.update(pairs)
            response.session_id = session.id
        return response


class _Incremental:
    """An incremental fetch in a session."""

    __slots__ = ("_epoch", "_session", "partitions")

    def __init__(self, session: FetchSession) -> None:
        self._session = session
        self._epoch = session.epoch
        self.partitions: Sequence[CachedPartition] = list(session.partitions.values())

    def build_response(self, results: Sequence[FetchedPartition], now_ms: int) -> FetchResponse:  # noqa: ARG002
        session = self._session
        if session.epoch != self._epoch:
            # The client sent the next request before this response: its state is unknown.
            error = ErrorCode.INVALID_FETCH_SESSION_EPOCH
            return FetchResponse(error_code=error, session_id=session.id)
        changed = session.update(zip(self.partitions, results, strict=True))
        return FetchResponse(session_id=session.id, topics=group_by_topic(changed))
