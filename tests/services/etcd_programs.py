"""The newest etcd and `etcdutl`, built from pinned sources and kept in a cache.

Most tests use the older etcd of a wheel (see `etcd_server`). This is the recommended version, and
only its `etcdutl` can bump revisions on a restore. It needs Go: see `is_available`.

    monkeypatch.setenv("PATH", str(etcd_programs.directory()), prepend=os.pathsep)

The directory must be first on the PATH: the `etcdutl` that the wheel installs is broken.
"""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from services.cache import cached_directory
from services.go_program import ENVIRONMENT, FLAGS

SOURCE = Path(__file__).with_name("etcd_go")


def is_available() -> bool:
    """Whether Go is installed, to build it."""
    return shutil.which("go") is not None


def version() -> str:
    [version] = re.findall(r"\tgo\.etcd\.io/etcd/server/v3 v(\S+)\n", _source("go.mod").decode())
    return version


def directory() -> Path:
    """The directory of both programs, which are built on first use."""
    digest = hashlib.sha256(b"".join(map(_source, ("go.mod", "go.sum", "main.go"))))
    return cached_directory(f"etcd-{version()}-{digest.hexdigest()[:16]}", _build)


def _source(name: str) -> bytes:
    return (SOURCE / name).read_bytes()


def _build(directory: Path) -> None:
    subprocess.run(  # noqa: S603 - the command is our own.
        [  # noqa: S607
            "go",
            "build",
            "-mod=readonly",
            *FLAGS,
            "-ldflags=-s -w",
            "-o",
            directory / "etcd",
            ".",
        ],
        cwd=SOURCE,
        env={**os.environ, **ENVIRONMENT},
        check=True,
    )
    (directory / "etcdutl").symlink_to("etcd")
