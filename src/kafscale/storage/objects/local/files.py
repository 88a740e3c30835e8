"""Objects as files: the blocking part of the local store.

Invariants:

* A file gets its name only when it is complete, by link (create-only) or rename (overwrite).
* With `fsync`, a PUT returns only when the data, the name and every parent directory would survive
  a power failure. Deletions are not synced: an object that reappears after a crash is deleted again
  by its owner.
* Keys are listed in the order of S3, by the bytes of the whole key: a directory sorts as if its
  name ended with a slash.
* Files whose names are not valid keys are neither listed nor touched.

All methods are thread-safe; only `replace`, which compares and then renames, needs a lock. `store`
ensures that one process at a time uses a directory, and that nothing here runs on the event loop.
"""

# ruff: noqa: PTH103, PTH105, PTH106, PTH108, PTH116, PTH120 - strings, for listings of 100,000 paths.

import errno
import itertools
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from kafscale.errors import (
    ObjectChangedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreFullError,
    StoreUnavailableError,
)
from kafscale.records.checksum import Buffer
from kafscale.storage.objects.local.direct_io import (
    DIRECT,
    Write,
    is_direct,
    read_direct,
    write_direct,
)
from kafscale.storage.objects.local.direct_io import SIZE_BYTES_MIN as DIRECT_BYTES_MIN
from kafscale.storage.objects.local.disk_reserve import DiskReserve
from kafscale.storage.objects.store import PAGE_KEYS, ObjectInfo, is_key

UNFINISHED: Final = ".tmp"
"""The directory, next to all namespaces, for files that are not complete."""

_PARTS_MAX: Final = 1024
"""Limit of buffers per call on Linux and macOS (IOV_MAX)."""

_NAMING_ATTEMPTS_MAX: Final = 100
"""How often a directory may be pruned between its creation and the link of a file."""

_NO_SPACE: Final = "no space left on device; delete topics or records, or enlarge the disk"
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class FileTree:
    """All objects below a directory."""

    __slots__ = (
        "_durable",
        "_fsync",
        "_is_buffered",
        "_replacing",
        "_reserve",
        "_root",
        "_serial",
        "_write",
        "_writer",
    )

    def __init__(
        self,
        root: str,
        *,
        fsync: bool,
        write: Write = os.writev,
        writer: str = "",
        reserve: DiskReserve | None = None,
    ) -> None:
        """`write` writes to a file descriptor; tests pass one that simulates a full disk.

        `writer` distinguishes the incomplete files of several processes. Without space for the
        `reserve`, only objects that may use it are written.
        """
        self._root = root
        self._fsync = fsync
        self._is_buffered = False
        self._write = write
        self._writer = writer
        self._reserve = reserve
        self._serial = itertools.count()
        self._replacing = threading.Lock()
        # Directories whose own names are known to be synced.
        self._durable: set[str] = set()
        with _translate_errors("open", root):
            os.makedirs(f"{root}/{UNFINISHED}", exist_ok=True)
            self._durable.add(root)

    def remove_unfinished(self) -> int:
        """Remove incomplete files of a killed process; return their number."""
        with (
            _translate_errors("clean", self._root),
            os.scandir(f"{self._root}/{UNFINISHED}") as entries,
        ):
            leftovers = [entry.path for entry in entries]
            for path in leftovers:
                os.unlink(path)
        return len(leftovers)

    def put(self, key: str, parts: Sequence[Buffer], *, create: bool) -> None:
        self._put(key, parts, lambda temporary, path: self._link(temporary, path, create=create))

    def replace(self, key: str, parts: Sequence[Buffer], etag: str) -> None:
        def publish(temporary: str, path: str) -> None:
            with self._replacing, suppress(FileNotFoundError):
                if _etag(os.stat(path)) == etag:
                    return os.replace(temporary, path)
            raise ObjectChangedError(key)

        self._put(key, parts, publish)

    def _put(self, key: str, parts: Sequence[Buffer], publish: Callable[[str, str], None]) -> None:
        reserve = self._reserve
        if reserve is None or reserve.restore():
            try:
                return self._write_and_publish(key, parts, publish)
            except StoreUnavailableError as error:
                if reserve is None or not (_is_full(error) and reserve.may_use(key)):
                    raise
                reserve.release()
        elif not reserve.may_use(key):
            raise StoreUnavailableError(f"put {key}: {_NO_SPACE}")
        return self._write_and_publish(key, parts, publish)

    def _write_and_publish(
        self, key: str, parts: Sequence[Buffer], publish: Callable[[str, str], None]
    ) -> None:
        """Write a file, and give it its name by `publish`."""
        temporary = f"{self._root}/{UNFINISHED}/{self._writer}{next(self._serial)}"
        path = f"{self._root}/{key}"
        try:
            with _translate_errors("put", key):
                self._write_file(temporary, parts)
                publish(temporary, path)
                if self._fsync:
                    directory = os.path.dirname(path)
                    self._make_durable(directory)
                    _fsync_directory(directory)
        finally:
            # After a rename the file is gone; after a link or a failure it remains.
            with suppress(OSError):
                os.unlink(temporary)

    def get(self, key: str, start: int, stop: int | None) -> memoryview:
        """The bytes from `start`, relative to the end if negative, to `stop` or the end."""
        if stop is not None and is_direct(start, stop) and not self._is_buffered:
            try:
                with (
                    _translate_errors("get", key),
                    _open_file(f"{self._root}/{key}", DIRECT) as descriptor,
                ):
                    return read_direct(descriptor, start, stop)
            except StoreUnavailableError as error:
                if not _is_invalid(error):
                    raise
                self._is_buffered = True
        with _translate_errors("get", key), _open_file(f"{self._root}/{key}") as descriptor:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ObjectNotFoundError(key)
            size_bytes = status.st_size
            if start < 0:
                start = max(0, size_bytes + start)
            return _read(descriptor, start, size_bytes if stop is None else min(stop, size_bytes))

    def head(self, key: str) -> ObjectInfo:
        with _translate_errors("head", key):
            status = os.stat(f"{self._root}/{key}")
        if not stat.S_ISREG(status.st_mode):
            raise ObjectNotFoundError(key)
        return _info(key, status)

    def list(self, prefix: str) -> Iterator[Sequence[ObjectInfo]]:
        """Pages of objects below `prefix`; files deleted meanwhile are skipped."""
        keys = self._walk(prefix)
        while batch := [*itertools.islice(keys, PAGE_KEYS)]:
            chunk: list[ObjectInfo] = []
            for key in batch:
                with suppress(FileNotFoundError):
                    chunk.append(_info(key, os.stat(f"{self._root}/{key}")))
            if chunk:
                yield chunk

    def delete(self, keys: Sequence[str]) -> None:
        directories: set[str] = set()
        for key in keys:
            path = f"{self._root}/{key}"
            with _translate_errors("delete", key), suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(path)
                directories.add(os.path.dirname(path))
        for directory in directories:
            self._prune(directory)

    def _write_file(self, path: str, parts: Sequence[Buffer]) -> None:
        flags = os.O_WRONLY | os.O_CLOEXEC | os.O_CREAT | os.O_EXCL
        if DIRECT and sum(map(len, parts)) >= DIRECT_BYTES_MIN and not self._is_buffered:
            try:
                self._write_parts(os.open(path, flags | DIRECT, 0o644), parts, write_direct)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                self._is_buffered = True  # The file system does not support direct I/O.
                flags &= ~os.O_EXCL
            else:
                return
        self._write_parts(os.open(path, flags, 0o644), parts, _write_all)

    def _write_parts(
        self,
        descriptor: int,
        parts: Sequence[Buffer],
        write: Callable[[Write, int, Sequence[Buffer]], None],
    ) -> None:
        try:
            write(self._write, descriptor, parts)
            if self._fsync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _link(self, temporary: str, path: str, *, create: bool) -> None:
        publish = os.link if create else os.replace
        for _ in range(_NAMING_ATTEMPTS_MAX):
            try:
                return publish(temporary, path)
            except FileExistsError as error:
                raise ObjectExistsError(path.removeprefix(f"{self._root}/")) from error
            except FileNotFoundError:
                # The directory does not exist yet, or was pruned concurrently, and may be again
                # while it is created: ignore the result and try again.
                with suppress(FileNotFoundError, FileExistsError):
                    os.makedirs(os.path.dirname(path), exist_ok=True)
        raise StoreUnavailableError(f"put {path}: its directory was removed concurrently")

    def _make_durable(self, directory: str) -> None:
        """Sync the directory's name. It contains a file, so it cannot be pruned now."""
        if directory not in self._durable:
            parent = os.path.dirname(directory)
            self._make_durable(parent)
            _fsync_directory(parent)
            self._durable.add(directory)

    def _prune(self, directory: str) -> None:
        """Remove the directory and its parents, as far up as they are empty."""
        while directory != self._root:
            self._durable.discard(directory)
            try:
                os.rmdir(directory)
            except OSError:
                return
            directory = os.path.dirname(directory)

    def _walk(self, prefix: str) -> Iterator[str]:
        """Yield the keys below `prefix`; keeps only the names of the parent directories."""
        try:
            with os.scandir(f"{self._root}/{prefix}") as entries:
                names = sorted(
                    f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name
                    for entry in entries
                    if not entry.is_symlink()
                )
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in names:
            key = prefix + name
            if name.endswith("/"):
                yield from self._walk(key)
            elif is_key(key):
                yield key


def _write_all(write: Write, descriptor: int, parts: Sequence[Buffer]) -> None:
    """Write all parts in as few calls as possible; the system may write only some bytes."""
    # Empty parts would cause an endless loop.
    waiting = [memoryview(part) for part in parts if len(part)]
    index = 0
    while index < len(waiting):
        written = write(descriptor, waiting[index : index + _PARTS_MAX])
        while index < len(waiting) and written >= len(waiting[index]):
            written -= len(waiting[index])
            index += 1
        if written:
            waiting[index] = waiting[index][written:]


def _read(descriptor: int, start: int, stop: int) -> memoryview:
    """Read into one `bytes`; the system returns fewer bytes only for huge ranges."""
    chunks: list[bytes] = []
    while start < stop:
        chunk = os.pread(descriptor, stop - start, start)
        if not chunk:
            break
        chunks.append(chunk)
        start += len(chunk)
    return memoryview(chunks[0] if len(chunks) == 1 else b"".join(chunks))


def _info(key: str, status: os.stat_result) -> ObjectInfo:
    return ObjectInfo(
        key=key,
        size_bytes=status.st_size,
        modified_ms=status.st_mtime_ns // 1_000_000,
        etag=_etag(status),
    )


def _etag(status: os.stat_result) -> str:
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}"


def _fsync_directory(path: str) -> None:
    with _open_file(path) as descriptor:
        os.fsync(descriptor)


def _is_invalid(error: StoreUnavailableError) -> bool:
    """Whether the file system does not support the operation."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EINVAL


def _is_full(error: StoreUnavailableError) -> bool:
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in _FULL


@contextmanager
def _open_file(path: str, flags: int = 0) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _translate_errors(name: str, key: str) -> Iterator[None]:
    """Translate errors of the file system."""
    try:
        yield
    except OSError as error:
        if name in {"get", "head"} and error.errno in {errno.ENOENT, errno.ENOTDIR}:
            raise ObjectNotFoundError(key) from error
        if error.errno in _FULL:
            raise StoreFullError(f"{name} {key}: {_NO_SPACE}") from error
        raise StoreUnavailableError(f"{name} {key}: {error.strerror}") from error
