"""Programs written in Go, built once from a pinned version and kept in the user's cache."""

import os
import shutil
import subprocess
from pathlib import Path

from services.cache import cached_directory

FLAGS = ("-trimpath", "-gcflags=all=-dwarf=false")
ENVIRONMENT = {"CGO_ENABLED": "0", "GOGC": "400"}
"""Without debug information, and with less garbage collection, the compiler takes a third less. All
programs have the same flags, so that the packages they share are compiled once."""


def go_program(package: str, version: str) -> Path | None:
    """The program of a package, built on first use; None without Go.

    Building takes minutes, so callers need a long timeout.
    """
    go = shutil.which("go")
    if go is None:
        return None
    name = package.rpartition("/")[2]

    def build(directory: Path) -> None:
        subprocess.run(  # noqa: S603 - of a pinned version.
            [go, "install", *FLAGS, "-ldflags=-s -w", f"{package}@{version}"],
            env={**os.environ, **ENVIRONMENT, "GOBIN": str(directory)},
            check=True,
        )

    return cached_directory(f"{name}-{version}", build) / name
