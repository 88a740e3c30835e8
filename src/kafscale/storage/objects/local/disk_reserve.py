"""`DiskReserve`: space that is kept free for deletions, so that they work on a full disk.

Deleting needs a write first: the metadata store records it in its own file on the same disk. The
reserve is a file that takes up this space. If such a write finds the disk full, the file is removed
and the write is repeated.

Invariant: while there is no reserve, objects are refused as on a full disk, so that records do not
take the space. The file is created again when there is twice its size, and PUTs succeed again.

The state is the file itself: the stores that share a disk share it without knowing of each other.
All methods are thread-safe, and block.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

SIZE_BYTES: Final = 8 * 1024 * 1024
"""Twice the log of SQLite between two checkpoints."""


class DiskReserve:
    """A file that can be removed to make space."""

    __slots__ = ("_path", "_size_bytes", "may_use")

    def __init__(
        self,
        path: Path,
        size_bytes: int = SIZE_BYTES,
        may_use: Callable[[str], bool] = lambda _key: False,
    ) -> None:
        """`may_use` returns whether an object may use the reserve; it must be tiny."""
        self._path = path
        self._size_bytes = size_bytes
        self.may_use = may_use

    def release(self) -> bool:
        """Make space; False if there is no reserve left."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True

    def restore(self) -> bool:
        """Create the reserve unless it exists; False if there is not enough space."""
        if self._path.exists():
            return True
        try:
            disk = os.statvfs(self._path.parent)
            if disk.f_bavail * disk.f_frsize < 2 * self._size_bytes:
                return False
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
        except FileExistsError:
            return True  # Another thread was faster.
        except OSError:
            return False
        try:
            os.posix_fallocate(descriptor, 0, self._size_bytes)
        except OSError:
            with suppress(OSError):
                self._path.unlink()
            return False
        finally:
            os.close(descriptor)
        return True
