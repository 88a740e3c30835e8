"""Programs from Debian packages, unpacked into the cache instead of installed.

Packages are downloaded once. Without apt or its repository, `is_available` is false.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from services.cache import cached_directory


def is_available(name: str, packages: Sequence[str], *, missing: bool = False) -> bool:
    """Whether the packages can be downloaded; downloads them."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        return False
    try:
        unpacked(name, packages, missing=missing)
    except subprocess.CalledProcessError:
        return False
    return True


def unpacked(name: str, packages: Sequence[str], *, missing: bool = False) -> Path:
    """The directory of the unpacked packages; `missing` adds missing dependencies."""

    def fetch(directory: Path) -> None:
        try:
            _download(directory, packages, missing=missing)
        except subprocess.CalledProcessError:
            # The package lists may be missing or outdated.
            subprocess.run(["apt-get", "--quiet", "update"], check=True, capture_output=True)  # noqa: S607
            _download(directory, packages, missing=missing)
        for package in directory.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, directory], check=True)  # noqa: S603, S607
            package.unlink()

    return cached_directory(name, fetch)


def environment(root: Path) -> dict[str, str]:
    """The environment with which unpacked programs find their libraries."""
    tops = [root / "usr" / "lib", root / "lib"]
    libraries = dict.fromkeys(
        str(path.parent) for top in tops for path in sorted(top.rglob("*.so*"))
    )
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)}


def _download(directory: Path, packages: Sequence[str], *, missing: bool) -> None:
    names = [*packages, *_missing(packages)] if missing else packages
    command = ["apt-get", "--quiet", "download", *dict.fromkeys(names)]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)  # noqa: S603


def _missing(packages: Sequence[str]) -> list[str]:
    """The dependencies of the packages that this machine lacks."""
    command = ["apt-get", "install", "--simulate", "--no-install-recommends", *packages]
    result = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return re.findall(r"^Inst (\S+)", result.stdout, re.MULTILINE)
