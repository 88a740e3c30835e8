"""Opens, releases and drops the coordinator shards of this broker, with all that they hold.

A shard holds the consumer groups and the transactional ids that hash to it. Their coordinators are
its contents: each loads what is its own.

Invariants: a shard is served once everything that the store holds for it is restored, and no
earlier write can change that any more. A shard that is released stops serving at once, but pending
writes are completed: on return the store has everything that was acknowledged. A shard that is
dropped, or lost to another broker, is abandoned at once: nothing more is written, and pending
requests fail with NOT_COORDINATOR.

The controller decides which broker owns a shard; the ownership guard in every write enforces it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from random import Random
from typing import Protocol

from kafscale.broker.shards.pausable_clock import PausableClock
from kafscale.broker.shards.shard_session import Phase, ShardSession, ShardSessions
from kafscale.broker.shards.write_sequence import WriteSequence
from kafscale.broker.shards.writer import ShardWriter
from kafscale.errors import NotCoordinatorError
from kafscale.metadata.cluster.ownership_guard import OwnershipGuard
from kafscale.metadata.schema.model import Assignment
from kafscale.metadata.store.base import MetadataStore
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)


class ShardContent(Protocol):
    """What one coordinator keeps in shards."""

    async def load(
        self, shards: Collection[int]
    ) -> Callable[[Collection[int]], Awaitable[None] | None]:
        """Read these shards from the store; the result restores those that are still wanted.

        What may take long is awaited, before they are served: they may be unloaded meanwhile.
        """

    def unload(self, sessions: Collection[ShardSession], error: NotCoordinatorError) -> None:
        """Forget what these sessions hold; fail its pending requests with this error."""


class Shards:
    """Starts shard sessions, loads their contents, and ends them."""

    def __init__(
        self,
        store: MetadataStore,
        clock: PausableClock,
        *,
        broker_id: int,
        linger_ms: int,
        random: Random,
        lease_is_valid: Callable[[], bool] = lambda: True,
    ) -> None:
        """`lease_is_valid` is whether no other broker can own the shards, by our own clock."""
        self.store = store
        self.broker_id = broker_id
        self.clock = clock
        self.lease_is_valid = lease_is_valid
        self.sessions = ShardSessions(lease_is_valid)
        self.writer = ShardWriter(
            WriteSequence(store, broker_id),
            clock,
            linger_ms=linger_ms,
            random=random,
            on_lost=self.end_lost_session,
        )
        self._contents: list[ShardContent] = []

    def add_content(self, content: ShardContent) -> None:
        """Load this with every shard; to be called before the first is opened."""
        self._contents.append(content)

    @property
    def served(self) -> Collection[int]:
        """The shards that are served; those that are still loading are not."""
        return {each.shard for each in self.sessions if each.phase is Phase.SERVING}

    async def open(self, guards: Mapping[int, OwnershipGuard]) -> None:
        """Serve these shards, once everything that the store holds for them is loaded.

        Until then their clients get COORDINATOR_LOAD_IN_PROGRESS. Raises `OperatingError` if the
        store fails; none of them is served then.
        """
        started = {shard: self._start_session(shard, guard) for shard, guard in guards.items()}
        try:
            # An earlier session may have been here, under the same assignment.
            await self.writer.settle()
            restores = [await content.load(started.keys()) for content in self._contents]
            for restore in restores:
                # Sessions that were ended meanwhile are excluded: nothing would unload them again.
                rest = restore(_loading(started).keys())
                if rest is not None:
                    await rest
        except BaseException:
            self._end_sessions(
                started.values(), NotCoordinatorError("the shard could not be loaded")
            )
            raise
        current = _loading(started)
        for session in current.values():
            session.phase = Phase.SERVING
        self.writer.retry_now()
        logger.info("coordinator shards opened", count=len(current))

    async def release(self, shards: Collection[int]) -> None:
        """Stop serving these shards; on return the store has everything of them.

        It takes as long as the store needs, while the writer runs, or until they are dropped.
        """
        releasing = [session for session in map(self.sessions.get, shards) if session is not None]
        error = NotCoordinatorError("another broker is the coordinator now")
        for session in releasing:
            session.phase = Phase.RELEASING
        self._unload(releasing, error)
        try:
            await asyncio.gather(*(session.wait_written() for session in releasing))
        finally:
            self._end_sessions(releasing, error)

    def drop(self, shards: Collection[int]) -> None:
        """Stop serving shards that another broker owns: nothing more of them is written."""
        dropped = [session for session in map(self.sessions.get, shards) if session is not None]
        self._end_sessions(dropped, NotCoordinatorError("another broker is the coordinator"))
        self.writer.retry_now()

    def drop_all(self) -> None:
        """Stop serving all shards at once, and write nothing more."""
        self.drop([session.shard for session in self.sessions])

    def end_lost_session(self, session: ShardSession) -> None:
        """Abandon a shard whose ownership guard failed."""
        if not session.has_ended:
            logger.warning("coordinator shard lost", shard=session.shard)
            self._end_sessions([session], NotCoordinatorError("another broker is the coordinator"))

    def update(self, shard: int, assignment: Assignment) -> None:
        """Record a newer assignment of a shard; one that names another owner ends the session."""
        session = self.sessions.get(shard)
        if session is None or assignment.mod_revision <= session.guard.assignment.mod_revision:
            return
        if _owner(assignment) == _owner(session.guard.assignment):
            session.guard.assignment = assignment
        else:
            self.end_lost_session(session)

    # --- internals ------------------------------------------------------------------------------

    def _start_session(self, shard: int, guard: OwnershipGuard) -> ShardSession:
        before = self.sessions.get(shard)
        if before is not None:
            # Another broker owned it in between, and it returned before that was noticed.
            self.end_lost_session(before)
        session = ShardSession(shard, guard, self.writer.schedule)
        self.sessions.add(session)
        return session

    def _end_sessions(self, sessions: Collection[ShardSession], error: NotCoordinatorError) -> None:
        ending = [session for session in sessions if not session.has_ended]
        for session in ending:
            self.sessions.remove(session)
            session.end(error)
        self._unload(ending, error)

    def _unload(self, sessions: Collection[ShardSession], error: NotCoordinatorError) -> None:
        for content in self._contents:
            content.unload(sessions, error)


def _loading(sessions: Mapping[int, ShardSession]) -> Mapping[int, ShardSession]:
    return {shard: each for shard, each in sessions.items() if each.phase is Phase.LOADING}


def _owner(assignment: Assignment) -> tuple[int, int, int]:
    return assignment.broker_id, assignment.broker_epoch, assignment.leader_epoch
