"""`ReloadingFile`: a value that is read from a file and reloaded when the file changes."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

from kafscale.config.watched_files import WatchedFiles
from kafscale.errors import ConfigError
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

Value = TypeVar("Value")

CHECK_INTERVAL_MS: Final = 1000
"""Files are checked at most this often, so that authentications do not cause a `stat` each."""


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
