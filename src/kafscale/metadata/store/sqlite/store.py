"""The metadata store in one SQLite file: the embedded default, for one process alone.

The laws: the file is touched by one thread of its own, never by the event loop; calls are done in
the order in which they were made, so every one sees what was answered before. Calls that arrive
while the disk is busy are done together, in one transaction, so that a slow disk batches by itself.
The file, its lock and its durability are `sqlite_file`'s; the number of calls that wait is bounded
by the number of callers, for each waits for its answer.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from kafscale.errors import StoreUnavailableError
from kafscale.metadata.store.base import (
    NO_LEASE,
    Committed,
    Compare,
    Entry,
    Event,
    Operation,
    Put,
    Snapshot,
    check_commit,
)
from kafscale.metadata.store.local_history import COMMITS_MAX, History
from kafscale.metadata.store.local_leases import Clock, Leases
from kafscale.metadata.store.sqlite.file import SqliteFile
from kafscale.observability.logging import get_logger

RETRY_MS: Final = 1000
"""How long to wait before the keys of a lease that has ended are tried to be deleted again."""

Answer = TypeVar("Answer")
Call = tuple[Callable[[SqliteFile], Any], "asyncio.Future[Any]"]

_log = get_logger(__name__)


class SqliteStore:
    """A `MetadataStore` in a file; made by `open`."""

    def __init__(
        self, file: SqliteFile, thread: ThreadPoolExecutor, clock: Clock, commits_max: int
    ) -> None:
        self._file = file
        self._thread = thread
        self._history = History(file.revision, commits_max)
        self._leases = Leases(clock, self._drop_lease)
        self._drops: dict[int, asyncio.Future[None]] = {}
        self._waiting: list[Call] = []
        self._busy = False
        self._closed = False

    @classmethod
    async def open(
        cls, path: Path, clock: Clock, *, fsync: bool = True, commits_max: int = COMMITS_MAX
    ) -> Self:
        """Open the file, or make it where there is none; its directory must exist."""
        thread = ThreadPoolExecutor(1, thread_name_prefix="kafscale-metadata")
        try:
            opening = partial(SqliteFile, path, fsync=fsync)
            file = await asyncio.get_running_loop().run_in_executor(thread, opening)
        except BaseException:
            thread.shutdown(wait=False)
            raise
        return cls(file, thread, clock, commits_max)

    async def get(self, key: str) -> Entry | None:
        return await self._call(lambda file: file.get(key))

    async def range(self, prefix: str) -> Snapshot:
        return await self._call(lambda file: file.range(prefix))

    async def commit(
        self, compares: Sequence[Compare], operations: Sequence[Operation]
    ) -> Committed:
        check_commit(compares, operations)
        self._begin()
        # Calls are done in order, so a lease that is held now outlives this commit: should it end
        # while the commit waits for the disk, its keys are deleted by a call that comes later.
        leases = {operation.lease for operation in operations if isinstance(operation, Put)}
        if not all(lease in self._leases for lease in leases - {NO_LEASE}):
            return Committed(succeeded=False, revision=self._history.revision)
        return await self._call(lambda file: file.commit(compares, operations))

    def watch(self, prefix: str, after_revision: int) -> AsyncGenerator[list[Event], None]:
        return self._history.watch(prefix, after_revision)

    async def grant(self, ttl_ms: int) -> int:
        self._begin()
        return self._leases.grant(ttl_ms)

    async def keep_alive(self, lease: int) -> bool:
        self._begin()
        return self._leases.keep_alive(lease)

    async def revoke(self, lease: int) -> None:
        self._begin()
        self._leases.revoke(lease)
        if lease in self._drops:
            await asyncio.shield(self._drops[lease])

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._leases.close()
        self._history.close()
        try:
            # Behind the calls that were made before; those that come later have been refused.
            await self._submit(lambda _file: None)
        finally:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._file.close)
            self._thread.shutdown()

    def _begin(self) -> None:
        if self._closed:
            raise StoreUnavailableError("the metadata store is closed")
        self._leases.sweep()

    def _drop_lease(self, lease: int) -> None:
        if self._closed:
            return
        drop = self._drops[lease] = self._submit(lambda file: file.drop_lease(lease))
        drop.add_done_callback(partial(self._dropped, lease))

    def _dropped(self, lease: int, drop: "asyncio.Future[None]") -> None:
        del self._drops[lease]
        if error := drop.exception():
            _log.warning("metadata lease kept too long", lease=lease, reason=str(error))
            drop.get_loop().call_later(RETRY_MS / 1000, self._drop_lease, lease)

    # --- the thread of the file ---------------------------------------------------------------

    async def _call(self, job: Callable[[SqliteFile], Answer]) -> Answer:
        self._begin()
        return await self._submit(job)

    def _submit(self, job: Callable[[SqliteFile], Answer]) -> "asyncio.Future[Answer]":
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append((job, answer))
        if not self._busy:
            self._busy = True
            # Soon, not now: calls that are made in one breath go together.
            loop.call_soon(self._start)
        return answer

    def _start(self) -> None:
        calls, self._waiting = self._waiting, []
        self._busy = bool(calls)
        if calls:
            jobs = [job for job, _ in calls]
            loop = asyncio.get_running_loop()
            running = loop.run_in_executor(self._thread, self._file.run, jobs)
            running.add_done_callback(partial(self._finish, calls))

    def _finish(self, calls: list[Call], running: "asyncio.Future[Any]") -> None:
        if error := running.exception():
            for _, answer in calls:
                if not answer.done():
                    answer.set_exception(error)
        else:
            results, commits = running.result()
            for events in commits:
                self._history.append(events)
            for (_, answer), result in zip(calls, results, strict=True):
                if not answer.done():
                    answer.set_result(result)
        self._start()
