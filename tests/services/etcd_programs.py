"""The newest etcd, and its `etcdutl`, built from pinned sources and kept in a cache.

What most tests use is the old one that comes as a wheel (see `etcd_server`). This one is what
clusters are to run with, and only its `etcdutl` makes revisions leap. Where there is no Go, there
is none of it: `is_available` tells.

    monkeypatch.setenv("PATH", str(etcd_programs.directory()), prepend=os.pathsep)

The directory has to come first on the PATH: the `etcdutl` that the wheel installs beside Python is
broken.
"""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from services.cache import kept

SOURCE = Path(__file__).with_name("etcd_go")


def is_available() -> bool:
    """Whether it can be built here."""
    return shutil.which("go") is not None


def version() -> str:
    [found] = re.findall(r"\tgo\.etcd\.io/etcd/server/v3 v(\S+)\n", _source("go.mod").decode())
    return found


def directory() -> Path:
    """Where both programs are, built if need be."""
    digest = hashlib.sha256(b"".join(map(_source, ("go.mod", "go.sum", "main.go"))))
    return kept(f"etcd-{version()}-{digest.hexdigest()[:16]}", _build)


def _source(name: str) -> bytes:
    return (SOURCE / name).read_bytes()


def _build(room: Path) -> None:
    subprocess.run(  # noqa: S603 - the command is our own.
        [  # noqa: S607
            "go",
            "build",
            "-mod=readonly",
            "-trimpath",
            "-ldflags=-s -w",
            "-o",
            room / "etcd",
            ".",
        ],
        cwd=SOURCE,
        env={**os.environ, "CGO_ENABLED": "0"},
        check=True,
    )
    (room / "etcdutl").symlink_to("etcd")
