"""The object store of an embedded Kafscale: files on the local disk.

Invariants: one process at a time uses the directory, ensured by a file lock that ends with the
process. Blocking calls run on the store's own threads, never on the event loop. Incomplete files of
a killed process are removed at the next start. See `files` for the layout.

Other processes may share the directory: readers, and jobs that write objects of their own.
"""

import asyncio
import fcntl
import os
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from kafscale.errors import OperatingError
from kafscale.observability.logging import get_logger
from kafscale.records.checksum import Buffer
from kafscale.storage.objects.local.disk_reserve import DiskReserve
from kafscale.storage.objects.local.files import FileTree
from kafscale.storage.objects.store import ObjectInfo, check_key, check_prefix

LOCK: Final = ".lock"
"""The lock file, next to all namespaces."""

_THREADS: Final = 8

logger = get_logger(__name__)

_Result = TypeVar("_Result")


class LocalObjectStore:
    """Objects below a directory, which is locked from the constructor until `close`."""

    __slots__ = ("_files", "_lock", "_threads")

    def __init__(
        self,
        root: Path,
        *,
        fsync: bool = True,
        threads: int = _THREADS,
        write: Callable[[int, Sequence[Buffer]], int] = os.writev,
        shared: bool = False,
        reserve: DiskReserve | None = None,
    ) -> None:
        """Lock the directory, and create it if necessary; raise if another process uses it.

        Without `fsync`, an object survives this process but perhaps not a power failure. `write`
        writes to a file; tests pass one that simulates a full disk. A `shared` directory is used
        without a lock. `reserve` keeps space on the disk for deletions.
        """
        assert threads > 0
        directory = str(root.absolute())
        writer = f"{uuid.uuid4().hex}-" if shared else ""
        self._files = FileTree(directory, fsync=fsync, write=write, writer=writer, reserve=reserve)
        self._lock = -1 if shared else _lock(directory)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="objects")
        if shared:
            return
        leftovers = self._files.remove_unfinished()
        if leftovers:
            logger.info("incomplete objects removed", directory=directory, count=leftovers)

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        check_key(key)
        assert any(map(len, parts)), "an object has at least one byte"
        await self._run(lambda: self._files.put(key, parts, create=create))

    async def replace(self, key: str, parts: Sequence[Buffer], etag: str) -> None:
        check_key(key)
        await self._run(lambda: self._files.replace(key, parts, etag))

    async def get(self, key: str) -> memoryview:
        check_key(key)
        return await self._run(lambda: self._files.get(key, 0, None))

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        assert 0 <= start < stop
        check_key(key)
        return await self._run(lambda: self._files.get(key, start, stop))

    async def get_suffix(self, key: str, length: int) -> memoryview:
        assert length > 0
        check_key(key)
        return await self._run(lambda: self._files.get(key, -length, None))

    async def head(self, key: str) -> ObjectInfo:
        check_key(key)
        return await self._run(lambda: self._files.head(key))

    async def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        check_prefix(prefix)
        chunks = self._files.list(prefix)
        while chunk := await self._run(lambda: next(chunks, None)):
            yield chunk

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects in the given order; stop at the first failure."""
        for key in keys:
            check_key(key)
        await self._run(lambda: self._files.delete(keys))

    async def close(self) -> None:
        """Wait for running calls, then release the lock."""
        await asyncio.to_thread(self._threads.shutdown)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    async def _run(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _lock(directory: str) -> int:
    """Lock a directory; the system releases the lock when this process ends."""
    try:
        descriptor = os.open(f"{directory}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise OperatingError(f"cannot use {directory}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise OperatingError(
            f"cannot use {directory}: another process uses it; stop that process, or set another"
            " data directory"
        ) from error
    return descriptor
