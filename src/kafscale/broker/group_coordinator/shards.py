"""Opens, releases and drops the group shards of this broker, with all their groups.

Invariants: a shard is served once everything that the store holds for it is restored, and no
earlier write can change that any more. A shard that is released stops serving at once, but pending
writes are completed: on return the store has everything that was acknowledged. A shard that is
dropped, or lost to another broker, is abandoned at once: nothing more is written, and pending
requests fail with NOT_COORDINATOR.

The controller decides which broker owns a shard; the ownership guard in every write enforces it.
"""

import asyncio
from collections.abc import Collection, Mapping

from kafscale.broker.group_coordinator import loader
from kafscale.broker.group_coordinator.group_registry import GroupRegistry
from kafscale.broker.group_coordinator.shard_session import Phase, ShardSession, ShardSessions
from kafscale.broker.group_coordinator.writer import GroupWriter
from kafscale.errors import NotCoordinatorError
from kafscale.metadata.cluster.ownership_guard import OwnershipGuard
from kafscale.metadata.schema.model import Assignment
from kafscale.metadata.store.base import MetadataStore
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)


class GroupShards:
    """Starts shard sessions, loads their groups, and ends them."""

    def __init__(
        self,
        store: MetadataStore,
        topic_store: TopicStore,
        sessions: ShardSessions,
        registry: GroupRegistry,
        writer: GroupWriter,
    ) -> None:
        self._store = store
        self._topic_store = topic_store
        self._sessions = sessions
        self._registry = registry
        self._writer = writer

    async def open(self, guards: Mapping[int, OwnershipGuard]) -> None:
        """Serve these shards, from what the store holds for them."""
        started = {shard: self._start_session(shard, guard) for shard, guard in guards.items()}
        try:
            # An earlier session may have been here, under the same assignment.
            await self._writer.settle()
            loaded = await loader.read(self._store, started.keys(), self._topic_store.visible)
            # No await from here on: sessions that were ended meanwhile are excluded.
            current = {
                shard: each for shard, each in started.items() if each.phase is Phase.LOADING
            }
            loader.restore(loaded, self._registry, current.keys(), self._topic_store.visible)
        except BaseException:
            self._end_sessions(
                started.values(), NotCoordinatorError("the group could not be loaded")
            )
            raise
        for session in current.values():
            session.phase = Phase.SERVING
        self._writer.retry_now()
        group_count = sum(len(loaded.groups[shard]) for shard in current)
        logger.info("group shards opened", count=len(current), group_count=group_count)

    async def release(self, shards: Collection[int]) -> None:
        """Stop serving these shards, and complete their pending writes."""
        releasing = [session for session in map(self._sessions.get, shards) if session is not None]
        error = NotCoordinatorError("another broker is the group's coordinator now")
        for session in releasing:
            session.phase = Phase.RELEASING
        self._unload(releasing, error)
        try:
            await asyncio.gather(*(session.wait_written() for session in releasing))
        finally:
            self._end_sessions(releasing, error)

    def drop(self, shards: Collection[int]) -> None:
        """Abandon these shards at once."""
        dropped = [session for session in map(self._sessions.get, shards) if session is not None]
        self._end_sessions(
            dropped, NotCoordinatorError("another broker is the group's coordinator")
        )
        self._writer.retry_now()

    def end_lost_session(self, session: ShardSession) -> None:
        """Abandon a shard whose ownership guard failed."""
        if not session.has_ended:
            logger.warning("group shard lost", shard=session.shard)
            self._end_sessions(
                [session], NotCoordinatorError("another broker is the group's coordinator")
            )

    def update(self, shard: int, assignment: Assignment) -> None:
        """Record a newer assignment of a shard."""
        session = self._sessions.get(shard)
        if session is None or assignment.mod_revision <= session.guard.assignment.mod_revision:
            return
        if _owner(assignment) == _owner(session.guard.assignment):
            session.guard.assignment = assignment
        else:
            self.end_lost_session(session)

    # --- internals ------------------------------------------------------------------------------

    def _start_session(self, shard: int, guard: OwnershipGuard) -> ShardSession:
        before = self._sessions.get(shard)
        if before is not None:
            # Another broker owned it in between, and it returned before that was noticed.
            self.end_lost_session(before)
        session = ShardSession(shard, guard, self._writer.schedule)
        self._sessions.add(session)
        return session

    def _end_sessions(self, sessions: Collection[ShardSession], error: NotCoordinatorError) -> None:
        ending = [session for session in sessions if not session.has_ended]
        for session in ending:
            self._sessions.remove(session)
            session.end(error)
        self._unload(ending, error)

    def _unload(self, sessions: Collection[ShardSession], error: NotCoordinatorError) -> None:
        ended = set(sessions)
        for runtime in self._registry:
            if runtime.session in ended:
                runtime.abort(error)
                self._registry.unload(runtime)


def _owner(assignment: Assignment) -> tuple[int, int, int]:
    return assignment.broker_id, assignment.broker_epoch, assignment.leader_epoch
