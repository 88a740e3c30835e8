"""Fetch sessions (KIP-227): what a consumer asked for before need not be said again.

A consumer of a thousand partitions would name them all in every fetch and get an answer for each,
though few have changed. In a session the broker remembers what is wanted and what it has told; a
request then names changes only, and so does the answer.

The laws:

1. A session is a convenience: where there is none, or no room for one, every answer is complete. A
   client whose session is gone (70), out of step (71) or of the other kind (106) begins anew.
2. Sessions are bounded in number and in partitions. A full cache makes room as Kafka's does: by the
   session that was idle for longest, if for long enough; else by the smallest that has had its
   time, if the new one is no smaller.

Reading is left to the handler, in three steps:

    context = sessions.begin(request, version, now_ms)
    results = [read(wanted) for wanted in context.wanted]    # Without waiting, if there are none.
    response = context.answer(results, now_ms)

What is new to a client is decided in `fetch_session`.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from kafscale.broker.fetch_sessions.session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    Key,
    Session,
    Wanted,
    asked,
    by_topic,
)
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.fetch import FetchedPartition, FetchRequest, FetchResponse

__all__ = ["FetchContext", "FetchSessions", "Wanted"]

SLOTS_MAX: Final = 1000
"""Kafka's max.incremental.fetch.session.cache.slots."""
PARTITIONS_COUNT_MAX: Final = 500_000
"""How many partitions all sessions hold together; a few hundred bytes each."""
EVICTION_MS: Final = 120_000
"""After this long without a fetch a session may go, and before this age in no other way."""

NO_SESSION_ID: Final = 0
TOPIC_IDS_SINCE: Final = 13


class FetchContext(Protocol):
    """One fetch: what is to be read for it, and what is answered."""

    wanted: Sequence[Wanted]

    def answer(self, results: Sequence[FetchedPartition], now_ms: int) -> FetchResponse:
        """The answer, from one result for each wanted partition, in their order."""


class FetchSessions:
    """The sessions of one broker, the longest idle first."""

    def __init__(
        self,
        new_id: Callable[[], int],
        *,
        slots_max: int = SLOTS_MAX,
        partitions_count_max: int = PARTITIONS_COUNT_MAX,
        eviction_ms: int = EVICTION_MS,
    ) -> None:
        """`new_id` draws a number from 1 to 2^31 - 1 that is hard to guess."""
        self._new_id = new_id
        self._slots_max = slots_max
        self._partitions_count_max = partitions_count_max
        self._eviction_ms = eviction_ms
        self._sessions: dict[int, Session] = {}
        self.partitions_count = 0
        """How many partitions all sessions hold."""
        self.evictions_count = 0
        """How many sessions had to make room."""

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest, version: int, now_ms: int) -> FetchContext:
        """What a request asks for, in its session if it has one."""
        by_topic_id = version >= TOPIC_IDS_SINCE
        if request.session_epoch in {INITIAL_EPOCH, FINAL_EPOCH}:
            # A full fetch ends the session that it names, and may begin another.
            self._remove(request.session_id)
            partitions = asked(request.topics, by_topic_id=by_topic_id)
            if request.session_epoch == INITIAL_EPOCH and partitions:
                return _Full(self, partitions, by_topic_id=by_topic_id)
            return _Sessionless(partitions)
        session = self._sessions.get(request.session_id)
        if session is None:
            return _Refusal(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return _Refusal(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_topic_id != by_topic_id:
            return _Refusal(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return self._go_on(session, request, now_ms)

    def _go_on(self, session: Session, request: FetchRequest, now_ms: int) -> FetchContext:
        # Out, and in again behind the others: it was used last.
        self._remove(session.id)
        session.advance(request.topics, request.topics_to_forget, now_ms)
        if not session.partitions:
            return _Sessionless({})
        if self.partitions_count + len(session) > self._partitions_count_max:
            return _Refusal(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        self._add(session)
        return _Incremental(session)

    def create(
        self, partitions: dict[Key, Wanted], *, by_topic_id: bool, now_ms: int
    ) -> Session | None:
        """A new session of these partitions, or None where there is no room for it."""
        if len(self._sessions) >= self._slots_max and not self._evict(len(partitions), now_ms):
            return None
        if self.partitions_count + len(partitions) > self._partitions_count_max:
            return None
        session_id = self._new_id()
        while session_id in self._sessions:
            session_id = self._new_id()
        assert session_id > NO_SESSION_ID
        session = Session(session_id, partitions, by_topic_id=by_topic_id, now_ms=now_ms)
        self._add(session)
        return session

    def _evict(self, partitions_count: int, now_ms: int) -> bool:
        """Make room for a session of so many partitions, if another is worth less.

        Where none is idle this looks at them all, which are no more than there are slots.
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
        self.evictions_count += 1
        return True

    def _add(self, session: Session) -> None:
        self._sessions[session.id] = session
        self.partitions_count += len(session)

    def _remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partitions_count -= len(session)


class _Refusal:
    """A fetch whose session is gone or out of step."""

    __slots__ = ("error", "wanted")

    def __init__(self, error: ErrorCode) -> None:
        self.error = error
        self.wanted: Sequence[Wanted] = ()

    def answer(self, results: Sequence[FetchedPartition], now_ms: int) -> FetchResponse:  # noqa: ARG002
        assert not results
        return FetchResponse(error_code=self.error)


class _Sessionless:
    """A fetch that stands for itself."""

    __slots__ = ("wanted",)

    def __init__(self, partitions: dict[Key, Wanted]) -> None:
        self.wanted: Sequence[Wanted] = list(partitions.values())

    def answer(self, results: Sequence[FetchedPartition], now_ms: int) -> FetchResponse:  # noqa: ARG002
        return FetchResponse(topics=by_topic(zip(self.wanted, results, strict=True)))


class _Full:
    """A fetch of everything, with which a session begins."""

    __slots__ = ("_by_topic_id", "_partitions", "_sessions", "wanted")

    def __init__(
        self, sessions: FetchSessions, partitions: dict[Key, Wanted], *, by_topic_id: bool
    ) -> None:
        self._sessions = sessions
        self._partitions = partitions
        self._by_topic_id = by_topic_id
        self.wanted: Sequence[Wanted] = list(partitions.values())

    def answer(self, results: Sequence[FetchedPartition], now_ms: int) -> FetchResponse:
        pairs = list(zip(self.wanted, results, strict=True))
        response = FetchResponse(topics=by_topic(pairs))
        session = self._sessions.create(
            self._partitions, by_topic_id=self._by_topic_id, now_ms=now_ms
        )
        if session is not None:
            session.tell(pairs)
            response.session_id = session.id
        return response


class _Incremental:
    """A fetch of what has changed."""

    __slots__ = ("_epoch", "_session", "wanted")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._epoch = session.epoch
        self.wanted: Sequence[Wanted] = list(session.partitions.values())

    def answer(self, results: Sequence[FetchedPartition], now_ms: int) -> FetchResponse:  # noqa: ARG002
        session = self._session
        if session.epoch != self._epoch:
            # The client went on without waiting for this answer: what it knows is uncertain.
            error = ErrorCode.INVALID_FETCH_SESSION_EPOCH
            return FetchResponse(error_code=error, session_id=session.id)
        news = session.tell(zip(self.wanted, results, strict=True))
        return FetchResponse(session_id=session.id, topics=by_topic(news))
