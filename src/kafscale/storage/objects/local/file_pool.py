"""Files that are not needed any more, kept to be written over.

Making and removing a file costs more than writing a small one: inodes and blocks have to be found
and given back, and file systems are slow to reuse what was removed a moment ago. A write-ahead log
makes and removes thousands a minute, so its files go round in a circle instead.

The laws: a file rests for a while before it is written over, so that whoever opened it under its
old name has read it by then; the files that are kept are bounded. Which objects are worth it is
left to whoever makes the store.
"""

# ruff: noqa: PTH104, PTH116 - paths are text here, as in `files`.

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

TOTAL_BYTES_MAX: Final = 256 * 1024 * 1024
FILE_BYTES_MAX: Final = 16 * 1024 * 1024
REST_SECONDS: Final = 2.0


class Spare(NamedTuple):
    """A file that waits to be written over."""

    path: str
    size_bytes: int
    rested_at: float


class SpareFiles:
    """The files that one store keeps; threads may call everything at once."""

    __slots__ = ("_clock", "_directory", "_lock", "_serial", "_size_bytes", "_spares")

    def __init__(self, directory: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`directory` is where spares are, on the same disk as the objects."""
        self._directory = directory
        self._clock = clock
        self._lock = threading.Lock()
        self._spares: deque[Spare] = deque()
        self._size_bytes = 0
        self._serial = 0

    def keep(self, path: str) -> bool:
        """Take a file away from its name; False if it is not worth it, and is to be removed."""
        size_bytes = os.stat(path).st_size
        with self._lock:
            total_bytes = self._size_bytes + size_bytes
            if size_bytes > FILE_BYTES_MAX or total_bytes > TOTAL_BYTES_MAX:
                return False
            self._size_bytes = total_bytes
            self._serial += 1
            spare = f"{self._directory}/spare-{self._serial}"
        try:
            os.rename(path, spare)
        except OSError:
            with self._lock:
                self._size_bytes -= size_bytes
            raise
        with self._lock:
            self._spares.append(Spare(spare, size_bytes, self._clock() + REST_SECONDS))
        return True

    def take(self) -> Spare | None:
        """A file to write over, if one has rested."""
        with self._lock:
            if not self._spares or self._spares[0].rested_at > self._clock():
                return None
            self._size_bytes -= self._spares[0].size_bytes
            return self._spares.popleft()
