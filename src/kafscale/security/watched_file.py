"""`WatchedFiles`: whether files have changed since they were looked at last.

The law: a change is told once, and none is missed: what is remembered was seen before the files
are read. Changes of what a link leads to count, which is how Kubernetes replaces a mounted secret,
and so do rights. A directory changes with the names in it.
"""

import os
from collections.abc import Iterable
from pathlib import Path


class WatchedFiles:
    """Files, and how they looked last."""

    def __init__(self, paths: Iterable[str | Path]) -> None:
        """Look at them for the first time; whoever reads them does so after that."""
        self._paths = [os.fspath(path) for path in paths]
        self._seen = self._look()

    def changed(self) -> bool:
        """Whether any of them has changed since the last time that this was asked."""
        before, self._seen = self._seen, self._look()
        return self._seen != before

    def _look(self) -> list[tuple[int, ...]]:
        return [_signature(path) for path in self._paths]


def _signature(path: str) -> tuple[int, ...]:
    """What differs once a file is another one; nothing where there is none."""
    try:
        seen = os.stat(path)  # noqa: PTH116 - paths are as people wrote them.
    except OSError:
        return ()
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns
