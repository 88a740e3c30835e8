"""`WatchedFiles` detects changes of files that settings name.

A change is reported once, and none is missed, because the files are checked before they are read.
Symlinks are followed, which is how Kubernetes replaces a mounted Secret; changed permissions count
as a change.
"""

import os
from collections.abc import Iterable
from pathlib import Path


class WatchedFiles:
    """Files and directories that are checked for changes."""

    def __init__(self, paths: Iterable[str | Path]) -> None:
        """Record the current state; read the files after this call."""
        self._paths = [os.fspath(path) for path in paths]
        self._signatures = self._stat()

    def changed(self) -> bool:
        """True if any of them has changed since the previous call."""
        before, self._signatures = self._signatures, self._stat()
        return self._signatures != before

    def _stat(self) -> list[tuple[int, ...]]:
        return [_signature(path) for path in self._paths]


def _signature(path: str) -> tuple[int, ...]:
    """Identify the state of a file; empty if it does not exist."""
    try:
        status = os.stat(path)  # noqa: PTH116 - paths are used as configured.
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
