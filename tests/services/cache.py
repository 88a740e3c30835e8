"""Where programs that tests fetch or build are kept, so that only a machine's first run waits."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kafscale"


def kept(name: str, make: Callable[[Path], None]) -> Path:
    """The directory `name`, made by `make` if it is not there yet, whole or not at all.

    Processes that come at the same time wait for one of them to make it.
    """
    directory = cache() / name
    if directory.exists():
        return directory
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            room = cache() / f"{name}.making"
            shutil.rmtree(room, ignore_errors=True)
            room.mkdir()
            make(room)
            room.rename(directory)
    return directory
