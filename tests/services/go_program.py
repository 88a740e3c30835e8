"""Programs written in Go, built once from a pinned version and kept in the user's cache."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

FLAGS = ("-trimpath", "-gcflags=all=-dwarf=false")
ENVIRONMENT = {"CGO_ENABLED": "0", "GOGC": "400"}
"""Without debug information, and with less garbage collection, the compiler takes a third less. All
programs have the same flags, so that the packages they share are compiled once."""


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kafscale" / "bin"


def go_program(package: str, version: str) -> Path | None:
    """The program of a package, built on first use; None without Go.

    Building takes minutes, so callers need a long timeout. Concurrent processes wait for the one
    that builds.
    """
    name = package.rpartition("/")[2]
    program = cache() / f"{name}-{version}"
    if program.exists():
        return program
    go = shutil.which("go")
    if go is None:
        return None
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            _build(go, f"{package}@{version}", name, program)
    return program


def _build(go: str, target: str, name: str, program: Path) -> None:
    unfinished = program.with_name(f"{program.name}.building")
    environment = {**os.environ, **ENVIRONMENT, "GOBIN": str(unfinished)}
    command = [go, "install", *FLAGS, "-ldflags=-s -w", target]
    subprocess.run(command, env=environment, check=True)  # noqa: S603 - of a pinned version.
    (unfinished / name).rename(program)
    unfinished.rmdir()
