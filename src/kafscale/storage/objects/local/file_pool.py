"""A pool of deleted files that are overwritten instead of created.

Creating and deleting a file costs more than writing a small one: the file system allocates and
frees inodes and blocks, and is slow to reuse those freed a moment ago. A WAL creates and deletes
thousands of files per minute, so its files are reused.

Invariants: a file is quarantined before it is overwritten, so that readers that opened it under its
old name have finished. The pool is bounded. The creator of the store decides which objects are
recycled.
"""

# ruff: noqa: PTH104, PTH116 - paths are strings, as in `files`.

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

TOTAL_BYTES_MAX: Final = 256 * 1024 * 1024
FILE_BYTES_MAX: Final = 16 * 1024 * 1024
QUARANTINE_SECONDS: Final = 2.0


class PooledFile(NamedTuple):
    """A file that can be overwritten."""

    path: str
    size_bytes: int
    reusable_at: float


class FilePool:
    """The reusable files of one store; thread-safe."""

    __slots__ = ("_clock", "_directory", "_files", "_lock", "_serial", "_size_bytes")

    def __init__(self, directory: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`directory` holds the pool, on the same disk as the objects."""
        self._directory = directory
        self._clock = clock
        self._lock = threading.Lock()
        self._files: deque[PooledFile] = deque()
        self._size_bytes = 0
        self._serial = 0

    def release(self, path: str) -> bool:
        """Move a file into the pool; False if it is too large or the pool is full."""
        size_bytes = os.stat(path).st_size
        with self._lock:
            total_bytes = self._size_bytes + size_bytes
            if size_bytes > FILE_BYTES_MAX or total_bytes > TOTAL_BYTES_MAX:
                return False
            self._size_bytes = total_bytes
            self._serial += 1
            path_in_pool = f"{self._directory}/path_in_pool-{self._serial}"
        try:
            os.rename(path, path_in_pool)
        except OSError:
            with self._lock:
                self._size_bytes -= size_bytes
            raise
        with self._lock:
            self._files.append(
                PooledFile(path_in_pool, size_bytes, self._clock() + QUARANTINE_SECONDS)
            )
        return True

    def acquire(self) -> PooledFile | None:
        """A file to overwrite, if one has left quarantine."""
        with self._lock:
            if not self._files or self._files[0].reusable_at > self._clock():
                return None
            self._size_bytes -= self._files[0].size_bytes
            return self._files.popleft()
