"""`SqliteStore`: the metadata store in one SQLite file, for one embedded broker.

A dedicated thread accesses the file. Calls are executed in order, so that each sees all earlier
ones. Calls that arrive while the disk is busy share the next transaction, which batches writes on
slow disks. The queue is bounded by the number of callers, because each waits for its result.
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
from kafscale.metadata.store.in_process import COMMITS_MAX, Clock, History, Leases
from kafscale.metadata.store.sqlite.file import SqliteFile
from kafscale.observability.logging import get_logger

METADATA_FILE: Final = "metadata.sqlite"
"""The name of the file in the data directory of a broker."""

RETRY_MS: Final = 1000
"""The delay before the keys of an ended lease are deleted again after a failure."""

Result = TypeVar("Result")
Call = tuple[Callable[[SqliteFile], Any], "asyncio.Future[Any]"]

logger = get_logger(__name__)


class SqliteStore:
    """A `MetadataStore` in a file; created by `open`."""

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
        cls,
        path: Path,
        clock: Clock,
        *,
        fsync: bool = True,
        commits_max: int = COMMITS_MAX,
        make_space: Callable[[], bool] = lambda: False,
    ) -> Self:
        """Open or create the file; its directory must exist. `make_space`: as in `SqliteFile`."""
        thread = ThreadPoolExecutor(1, thread_name_prefix="kafscale-metadata")
        try:
            open_file = partial(SqliteFile, path, fsync=fsync, make_space=make_space)
            file = await asyncio.get_running_loop().run_in_executor(thread, open_file)
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
        # Calls are executed in order: if a lease that is valid now ends while this commit waits for
        # the disk, its keys are deleted by a later call.
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
            # After all earlier calls; later ones have been rejected.
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
            logger.warning("expired lease not deleted", lease=lease, reason=str(error))
            drop.get_loop().call_later(RETRY_MS / 1000, self._drop_lease, lease)

    # --- database thread ----------------------------------------------------------------------

    async def _call(self, job: Callable[[SqliteFile], Result]) -> Result:
        self._begin()
        return await self._submit(job)

    def _submit(self, job: Callable[[SqliteFile], Result]) -> "asyncio.Future[Result]":
        loop = asyncio.get_running_loop()
        result: asyncio.Future[Result] = loop.create_future()
        self._waiting.append((job, result))
        if not self._busy:
            self._busy = True
            # Deferred, so that calls made in the same loop iteration share a transaction.
            loop.call_soon(self._start)
        return result

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
            for _, future in calls:
                if not future.done():
                    future.set_exception(error)
        else:
            results, commits = running.result()
            for events in commits:
                self._history.append(events)
            for (_, future), result in zip(calls, results, strict=True):
                if not future.done():
                    future.set_result(result)
        self._start()
