"""`ShardLogs`: the shard logs of this broker, made when clients begin to read `__consumer_offsets`.

Invariants: without readers, no log exists and a commit costs nothing more. The first reader opens
the logs of all shards that this broker serves, with one read of the store; what is written
meanwhile is applied after it. Logs that nothing reads any more are dropped after `IDLE_SECONDS`,
which also forgets their tombstones. A log ends with the session of its shard.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from kafscale.broker.group_coordinator.shard_log import ShardLog
from kafscale.broker.shards.shard_session import Phase, ShardSession, ShardSessions
from kafscale.errors import NotOwnerError, OperatingError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import shard_of
from kafscale.metadata.store.base import Entry, MetadataStore
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

IDLE_SECONDS: Final = 600.0

ENTRIES_AT_ONCE: Final = 2000
"""How many keys are parsed before the event loop runs other tasks: a few milliseconds."""


class ShardLogs:
    """The logs of the shards that this broker serves."""

    def __init__(
        self, store: MetadataStore, sessions: ShardSessions, clock: Callable[[], int]
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._clock = clock
        """Returns milliseconds since the epoch."""
        self._opening: asyncio.Task[None] | None = None
        self._is_read = False

    @property
    def are_open(self) -> bool:
        """Whether every shard that is served has a log."""
        return all(_is_open(session) for session in self._served())

    def find(self, shard: int) -> ShardLog:
        """The log of a shard that this broker serves; raises if it is not open yet."""
        self._is_read = True
        session = self._sessions.get(shard)
        if session is None or session.phase is not Phase.SERVING:
            raise NotOwnerError(f"this broker is not the coordinator of shard {shard}")
        if session.log is None or not session.log.is_loaded:
            self._start_opening()
            raise NotOwnerError(f"the log of shard {shard} is being opened")
        return session.log

    async def open(self) -> None:
        """Open the logs of all shards that are served; may raise `OperatingError`."""
        self._is_read = True
        while not self.are_open:
            await asyncio.shield(self._start_opening())

    async def run(self) -> None:
        """Drop logs that nothing reads; cancel it to stop."""
        while True:
            await asyncio.sleep(IDLE_SECONDS)
            if not self._is_read:
                self.drop()
            self._is_read = any(
                session.log and session.log.is_watched for session in self._sessions
            )

    def drop(self) -> None:
        """Forget all logs; they are opened again when a client reads one."""
        for session in self._sessions:
            session.drop_log()

    # --- internals --------------------------------------------------------------------------------

    def _served(self) -> list[ShardSession]:
        return [session for session in self._sessions if session.phase is Phase.SERVING]

    def _start_opening(self) -> "asyncio.Task[None]":
        if self._opening is None or self._opening.done():
            self._opening = asyncio.get_running_loop().create_task(self._open())
            self._opening.add_done_callback(_retrieve_error)
        return self._opening

    async def _open(self) -> None:
        sessions = {each.shard: each for each in self._served() if not _is_open(each)}
        for session in sessions.values():
            session.log = ShardLog(
                session.shard, session.guard.assignment.leader_epoch, self._clock
            )
        try:
            snapshot = await self._store.range(keys.CONSUMERS)
            entries: dict[int, list[Entry]] = {shard: [] for shard in sessions}
            for count, entry in enumerate(snapshot.entries, start=1):
                key = keys.parse(entry.key)
                if isinstance(key, keys.ConsumerGroupKey | keys.CommittedOffsetKey):
                    entries.get(shard_of(key.group), []).append(entry)
                if count % ENTRIES_AT_ONCE == 0:
                    await asyncio.sleep(0)
            for shard, session in sessions.items():
                # The session may have ended meanwhile, and its log with it.
                if session.log is not None:
                    session.log.load(entries[shard], snapshot.revision)
        except BaseException:
            for session in sessions.values():
                session.drop_log()
            raise
        logger.info("group shards opened for readers", count=len(sessions))


def _is_open(session: ShardSession) -> bool:
    return session.log is not None and session.log.is_loaded


def _retrieve_error(opening: "asyncio.Task[None]") -> None:
    """Log a failure that nothing may wait for; readers try again."""
    error = None if opening.cancelled() else opening.exception()
    if isinstance(error, OperatingError):
        logger.warning("group shards not opened for readers", reason=str(error))
    elif error is not None:
        logger.error("group shards not opened for readers", exc_info=error)
