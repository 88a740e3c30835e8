"""Values that are read from files and reloaded when the files change.

`WatchedFiles` detects changes by `stat`; `ReloadingFile` keeps a parsed value current. A change is
reported once, and none is missed, because the files are checked before they are read. Symlinks are
followed, which is how Kubernetes replaces a mounted Secret; changed permissions count as a change.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Generic, TypeVar

from kafscale.errors import ConfigError
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

Value = TypeVar("Value")

CHECK_INTERVAL_MS: Final = 1000
"""Files are checked at most this often, so that authentications do not cause a `stat` each."""


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


class ReloadingFile(Generic[Value]):
    """A value that is parsed from a file or a directory, and reloaded when that changes.

    If a reload fails, the error is logged once and the previous value stays in use.
    """

    def __init__(self, path: Path, read: Callable[[Path], Value], clock: Callable[[], int]) -> None:
        """Read the file for the first time; `read` raises `ConfigError` for invalid content."""
        self._path = path
        self._read = read
        self._clock = clock
        self._checked_ms = clock()
        self._files = WatchedFiles(_watched_paths(path))
        self._value = read(path)

    def value(self) -> Value:
        """Return the current value, after a reload if the file has changed."""
        now_ms = self._clock()
        # If the clock was set back, check again.
        if not 0 <= now_ms - self._checked_ms < CHECK_INTERVAL_MS:
            self._checked_ms = now_ms
            if self._files.changed():
                self._reload()
        return self._value

    def _reload(self) -> None:
        self._files = WatchedFiles(_watched_paths(self._path))
        try:
            self._value = self._read(self._path)
        except ConfigError as error:
            logger.error("file not reloaded", file=str(self._path), reason=str(error))
        else:
            logger.info("file reloaded", file=str(self._path))


def _watched_paths(path: Path) -> list[Path]:
    """The file, or the directory and its files: writing to a file does not change its directory."""
    try:
        return [path, *path.iterdir()] if path.is_dir() else [path]
    except OSError:
        return [path]


def _signature(path: str) -> tuple[int, ...]:
    """Identify the state of a file; empty if it does not exist."""
    try:
        status = os.stat(path)  # noqa: PTH116 - paths are used as configured.
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
