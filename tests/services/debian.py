"""Programs taken out of Debian's packages without being installed.

What a machine does not have is fetched once and kept; nothing of the machine is changed. Where
there is no apt, or it cannot be reached, `is_available` says so.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from services.cache import kept


def is_available(name: str, packages: Sequence[str], *, missing: bool = False) -> bool:
    """Whether the packages can be had; asking fetches them."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        return False
    try:
        unpacked(name, packages, missing=missing)
    except subprocess.CalledProcessError:
        return False
    return True


def unpacked(name: str, packages: Sequence[str], *, missing: bool = False) -> Path:
    """The directory in which packages lie unpacked; with what they need and is `missing` here."""

    def fetch(room: Path) -> None:
        try:
            _download(room, packages, missing=missing)
        except subprocess.CalledProcessError:
            # A machine that has never asked knows no packages, or old ones.
            subprocess.run(["apt-get", "--quiet", "update"], check=True, capture_output=True)  # noqa: S607
            _download(room, packages, missing=missing)
        for package in room.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, room], check=True)  # noqa: S603, S607
            package.unlink()

    return kept(name, fetch)


def environment(root: Path) -> dict[str, str]:
    """The variables with which what lies there finds its libraries."""
    tops = [root / "usr" / "lib", root / "lib"]
    libraries = dict.fromkeys(
        str(path.parent) for top in tops for path in sorted(top.rglob("*.so*"))
    )
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)}


def _download(room: Path, packages: Sequence[str], *, missing: bool) -> None:
    wanted = [*packages, *_missing(packages)] if missing else packages
    command = ["apt-get", "--quiet", "download", *dict.fromkeys(wanted)]
    subprocess.run(command, cwd=room, check=True, capture_output=True)  # noqa: S603


def _missing(packages: Sequence[str]) -> list[str]:
    """What would be installed along with packages on this machine."""
    command = ["apt-get", "install", "--simulate", "--no-install-recommends", *packages]
    said = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return re.findall(r"^Inst (\S+)", said.stdout, re.MULTILINE)
