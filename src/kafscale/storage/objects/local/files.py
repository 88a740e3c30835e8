"""Objects as files of one directory: the blocking half of the local store.

The laws:

* A file gets its name only when it is complete, by a link (create-only) or a rename (replace).
* With `fsync`, a PUT returns only when the bytes, the name and every directory above it would
  survive a power cut. Removals are not forced to disk: an object that comes back after a crash is
  one that its owner removes again.
* Keys are listed as S3 lists them, by the bytes of the whole key, from names alone: a directory
  sorts as if its name ended with the slash.
* What has a name that is no key is not ours: it is neither listed nor touched.

Threads may call everything at once; there is no lock, because the file system has its own. That
one process at a time uses a directory, and that none of this runs on the event loop, is left to
`local`.
"""

# ruff: noqa: PTH103, PTH106, PTH108, PTH116, PTH120 - text, as a listing makes paths by the 100,000.

import errno
import itertools
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from kafscale.errors import ObjectExistsError, ObjectNotFoundError, StoreUnavailableError
from kafscale.records.checksum import Buffer
from kafscale.storage.objects.local.direct_io import (
    DIRECT,
    Write,
    is_direct,
    read_direct,
    write_direct,
)
from kafscale.storage.objects.local.direct_io import SIZE_BYTES_MIN as DIRECT_BYTES_MIN
from kafscale.storage.objects.local.file_pool import SpareFiles
from kafscale.storage.objects.store import PAGE_KEYS, ObjectInfo, is_key

UNFINISHED: Final = ".tmp"
"""The directory, beside all namespaces, where files wait until they are complete."""

_PARTS_MAX: Final = 1024
"""How many buffers Linux and macOS take in one call (IOV_MAX)."""

_NAMING_ATTEMPTS_MAX: Final = 100
"""How often a directory may be pruned between being made and getting its file."""

_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class FileTree:
    """Every object below one directory."""

    __slots__ = (
        "_durable",
        "_fsync",
        "_is_buffered",
        "_recycles",
        "_root",
        "_serial",
        "_spares",
        "_write",
        "_writer",
    )

    def __init__(
        self,
        root: str,
        *,
        fsync: bool,
        recycles: Callable[[str], bool] = lambda _key: False,
        write: Write = os.writev,
        writer: str = "",
    ) -> None:
        """Of objects that it `recycles`, by their keys, the files are used again (see `spares`).

        `write` is how bytes reach a file descriptor; tests hand in a disk that is full. `writer`
        tells the unfinished files of one process from those of others, where several write.
        """
        self._root = root
        self._fsync = fsync
        self._is_buffered = False
        self._recycles = recycles
        self._spares = SpareFiles(f"{root}/{UNFINISHED}")
        self._write = write
        self._writer = writer
        self._serial = itertools.count()
        # The directories whose own names are known to be on the disk.
        self._durable: set[str] = set()
        with _operation("open", root):
            os.makedirs(f"{root}/{UNFINISHED}", exist_ok=True)
            self._durable.add(root)

    def remove_unfinished(self) -> int:
        """Remove what a process that was killed had not finished; return how many files."""
        with _operation("clean", self._root), os.scandir(f"{self._root}/{UNFINISHED}") as found:
            leftovers = [entry.path for entry in found]
            for path in leftovers:
                os.unlink(path)
        return len(leftovers)

    def put(self, key: str, parts: Sequence[Buffer], *, create: bool) -> None:
        spare = self._spares.take() if self._recycles(key) else None
        temporary = spare.path if spare else self._unfinished()
        path = f"{self._root}/{key}"
        try:
            with _operation("put", key):
                self._write_file(temporary, parts, spare.size_bytes if spare else 0)
                self._name(temporary, path, create=create)
                if self._fsync:
                    directory = os.path.dirname(path)
                    self._make_durable(directory)
                    _fsync_directory(directory)
        finally:
            # A rename has taken the name away already; a link leaves it, and a failure too.
            with suppress(OSError):
                os.unlink(temporary)

    def get(self, key: str, start: int, stop: int | None) -> memoryview:
        """The bytes from `start`, counted from the end if negative, up to `stop` or the end."""
        if stop is not None and is_direct(start, stop) and not self._is_buffered:
            try:
                with _operation("get", key), _opened(f"{self._root}/{key}", DIRECT) as descriptor:
                    return read_direct(descriptor, start, stop)
            except StoreUnavailableError as error:
                if not _is_invalid(error):
                    raise
                self._is_buffered = True
        with _operation("get", key), _opened(f"{self._root}/{key}") as descriptor:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ObjectNotFoundError(key)
            size_bytes = status.st_size
            if start < 0:
                start = max(0, size_bytes + start)
            return _read(descriptor, start, size_bytes if stop is None else min(stop, size_bytes))

    def head(self, key: str) -> ObjectInfo:
        with _operation("head", key):
            status = os.stat(f"{self._root}/{key}")
        if not stat.S_ISREG(status.st_mode):
            raise ObjectNotFoundError(key)
        return _info(key, status)

    def list(self, prefix: str) -> Iterator[Sequence[ObjectInfo]]:
        """Chunks of objects below `prefix`; a file that vanishes meanwhile is left out."""
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
            with _operation("delete", key), suppress(FileNotFoundError, NotADirectoryError):
                if not (self._recycles(key) and self._spares.keep(path)):
                    os.unlink(path)
                directories.add(os.path.dirname(path))
        for directory in directories:
            self._prune(directory)

    def _unfinished(self) -> str:
        return f"{self._root}/{UNFINISHED}/{self._writer}{next(self._serial)}"

    def _write_file(self, path: str, parts: Sequence[Buffer], spare_bytes: int) -> None:
        size_bytes = sum(map(len, parts))
        flags = os.O_WRONLY | os.O_CLOEXEC
        if not spare_bytes:
            flags |= os.O_CREAT | os.O_EXCL
        if DIRECT and size_bytes >= DIRECT_BYTES_MIN and not self._is_buffered:
            try:
                self._write_parts(os.open(path, flags | DIRECT, 0o644), parts, write_direct)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                self._is_buffered = True  # This file system knows no other way.
                flags &= ~os.O_EXCL
            else:
                return
        self._write_parts(os.open(path, flags, 0o644), parts, _write_all)
        if size_bytes < spare_bytes:
            os.truncate(path, size_bytes)

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

    def _name(self, temporary: str, path: str, *, create: bool) -> None:
        give = os.link if create else os.replace
        for _ in range(_NAMING_ATTEMPTS_MAX):
            try:
                return give(temporary, path)
            except FileExistsError as error:
                raise ObjectExistsError(path.removeprefix(f"{self._root}/")) from error
            except FileNotFoundError:
                # The directory is not there yet, or has been pruned since, and may be so again
                # while it is made: whatever comes of it, the next attempt will tell.
                with suppress(FileNotFoundError, FileExistsError):
                    os.makedirs(os.path.dirname(path), exist_ok=True)
        raise StoreUnavailableError(f"put {path}: its directory does not stay")

    def _make_durable(self, directory: str) -> None:
        """Force the directory's name to disk. It has a file in it, so nobody can prune it now."""
        if directory not in self._durable:
            parent = os.path.dirname(directory)
            self._make_durable(parent)
            _fsync_directory(parent)
            self._durable.add(directory)

    def _prune(self, directory: str) -> None:
        """Remove the directory and those above it, as far up as they are empty."""
        while directory != self._root:
            self._durable.discard(directory)
            try:
                os.rmdir(directory)
            except OSError:
                return
            directory = os.path.dirname(directory)

    def _walk(self, prefix: str) -> Iterator[str]:
        """The keys below `prefix`, holding no more than the names of the directories above."""
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
    """Write every part, in as few calls as the system allows, though it may take only some."""
    # Empty parts would look like progress that never comes.
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
    """Straight into one `bytes`: the system may give less than asked only for huge ranges."""
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
        key=key, size_bytes=status.st_size, modified_ms=status.st_mtime_ns // 1_000_000
    )


def _fsync_directory(path: str) -> None:
    with _opened(path) as descriptor:
        os.fsync(descriptor)


def _is_invalid(error: StoreUnavailableError) -> bool:
    """Whether the file system does not know what it was asked to do."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EINVAL


@contextmanager
def _opened(path: str, flags: int = 0) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _operation(name: str, key: str) -> Iterator[None]:
    """Say in our words what the file system refused."""
    try:
        yield
    except OSError as error:
        if name in {"get", "head"} and error.errno in {errno.ENOENT, errno.ENOTDIR}:
            raise ObjectNotFoundError(key) from error
        reason = "no space left on the disk" if error.errno in _FULL else error.strerror
        raise StoreUnavailableError(f"{name} {key}: {reason}") from error
