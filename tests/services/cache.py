"""A cache directory for programs that tests download or build."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kafscale"


def cached_directory(name: str, make: Callable[[Path], None]) -> Path:
    """The directory `name`; `make` creates it, atomically, if it does not exist.

    Concurrent processes wait for the one that creates it.
    """
    directory = cache() / name
    if directory.exists():
        return directory
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            unfinished = cache() / f"{name}.making"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(directory)
    return directory
