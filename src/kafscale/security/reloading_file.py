"""`FileSource`: what a file, or a directory, says; read again when it has changed.

The laws: files are looked at when somebody asks, once a second at most. What has become unreadable
is told once, and what was read before stays in use. What the content means is left to `read`, which
raises `ConfigError` for what is of no use.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

from kafscale.errors import ConfigError
from kafscale.observability.logging import get_logger
from kafscale.security.watched_file import WatchedFiles

log = get_logger(__name__)

Value = TypeVar("Value")

LOOK_INTERVAL_MS: Final = 1000
"""How often files are looked at, at most: a login costs no look of its own."""


class FileSource(Generic[Value]):
    """A value that a file holds."""

    def __init__(self, path: Path, read: Callable[[Path], Value], clock: Callable[[], int]) -> None:
        """Read it for the first time; raises `ConfigError`."""
        self._path = path
        self._read = read
        self._clock = clock
        self._looked_ms = clock()
        self._files = WatchedFiles(_parts(path))
        self._value = read(path)

    def value(self) -> Value:
        """What it says now."""
        now_ms = self._clock()
        # A clock that was set back counts as time that has passed.
        if not 0 <= now_ms - self._looked_ms < LOOK_INTERVAL_MS:
            self._looked_ms = now_ms
            if self._files.changed():
                self._refresh()
        return self._value

    def _refresh(self) -> None:
        self._files = WatchedFiles(_parts(self._path))
        try:
            self._value = self._read(self._path)
        except ConfigError as error:
            log.error("file not reloaded", file=str(self._path), reason=str(error))  # noqa: TRY400
        else:
            log.info("file reloaded", file=str(self._path))


def _parts(path: Path) -> list[Path]:
    """What to look at: a directory does not change when a file in it is written to."""
    try:
        return [path, *path.iterdir()] if path.is_dir() else [path]
    except OSError:
        return [path]
