"""Objects as files of this machine: what an embedded Kafscale keeps its records in.

The laws: one process at a time has the directory, kept by a lock that dies with it; every call that
may block runs on a thread of the store's own, never on the event loop; and what a killed process
left unfinished is removed at the next start. How an object becomes a file is `files`.

Beside whoever has it, others may share the directory: those who read, and jobs that write objects
of their own. Whoever reads an object whose files are recycled has to prove what was read: its file
may have become another's meanwhile.
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
from kafscale.storage.objects.local.files import FileTree
from kafscale.storage.objects.store import ObjectInfo, check_key, check_prefix

LOCK: Final = ".lock"
"""The file, beside all namespaces, whose lock says that the directory is in use."""

_THREADS: Final = 8

_log = get_logger(__name__)

_Result = TypeVar("_Result")


class LocalObjectStore:
    """Objects below one directory, which is locked from the constructor until `close`."""

    __slots__ = ("_files", "_lock", "_threads")

    def __init__(
        self,
        root: Path,
        *,
        fsync: bool = True,
        recycles: Callable[[str], bool] = lambda _key: False,
        threads: int = _THREADS,
        write: Callable[[int, Sequence[Buffer]], int] = os.writev,
        shared: bool = False,
    ) -> None:
        """Take the directory, making it if need be; refuse one that another process has.

        Without `fsync` an object survives this process but perhaps not this machine. Of objects
        that it `recycles`, by their keys, files are written over when they are deleted. `write` is
        how bytes reach a file, for tests of disks that are full. A `shared` directory is not taken,
        only used.
        """
        assert threads > 0
        directory = str(root.absolute())
        writer = f"{uuid.uuid4().hex}-" if shared else ""
        self._files = FileTree(
            directory, fsync=fsync, recycles=recycles, write=write, writer=writer
        )
        self._lock = -1 if shared else _lock(directory)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="objects")
        if shared:
            return
        leftovers = self._files.remove_unfinished()
        if leftovers:
            _log.info("unfinished objects removed", directory=directory, count=leftovers)

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        check_key(key)
        assert any(map(len, parts)), "an object has at least one byte"
        await self._run(lambda: self._files.put(key, parts, create=create))

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
        """Remove objects in the order of their keys as they are given; stop at one that fails."""
        for key in keys:
            check_key(key)
        await self._run(lambda: self._files.delete(keys))

    async def close(self) -> None:
        """Wait for what has begun, then let another process have the directory."""
        await asyncio.to_thread(self._threads.shutdown)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    async def _run(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _lock(directory: str) -> int:
    """Take the lock of a directory; the system gives it back when this process ends, however."""
    try:
        descriptor = os.open(f"{directory}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise OperatingError(f"cannot use {directory}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise OperatingError(
            f"cannot use {directory}: another process keeps its objects there; "
            "stop it, or give this one a data directory of its own"
        ) from error
    return descriptor
