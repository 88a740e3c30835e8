"""kcat, taken out of Debian's packages without being installed.

Where there is no apt, or it cannot be reached, `is_available` says so.
"""

import os
import shutil
import subprocess
from pathlib import Path

from services.cache import kept

PACKAGES = ("kcat", "librdkafka1", "libyajl2")
RUN_S_MAX = 15


def is_available() -> bool:
    if shutil.which("kcat"):
        return True
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        return False
    try:
        _unpacked()
    except subprocess.CalledProcessError:
        return False
    return True


def run(*arguments: str, given: bytes = b"") -> bytes:
    """Run kcat to its end, which must be a good one; what it printed."""
    program, environment = shutil.which("kcat"), dict(os.environ)
    if program is None:
        root = _unpacked()
        program = str(root / "usr" / "bin" / "kcat")
        libraries = [str(path) for path in (root / "usr" / "lib").iterdir()]
        environment["LD_LIBRARY_PATH"] = ":".join([str(root / "usr" / "lib"), *libraries])
    done = subprocess.run(  # noqa: S603 - the arguments are a test's own.
        [program, *arguments],
        input=given, capture_output=True, env=environment, timeout=RUN_S_MAX, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def _unpacked() -> Path:
    return kept("kcat", _fetch)


def _fetch(room: Path) -> None:
    try:
        _download(room)
    except subprocess.CalledProcessError:
        # A machine that has never asked knows no packages, or old ones.
        subprocess.run(["apt-get", "--quiet", "update"], check=True, capture_output=True)  # noqa: S607
        _download(room)
    for package in room.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, room], check=True)  # noqa: S603, S607


def _download(room: Path) -> None:
    command = ["apt-get", "--quiet", "download", *PACKAGES]
    subprocess.run(command, cwd=room, check=True, capture_output=True)  # noqa: S603
