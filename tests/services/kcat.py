"""kcat: the installed one, or that of the Debian package."""

import os
import shutil
import subprocess

from services import debian

PACKAGES = ("kcat", "librdkafka1", "libyajl2")
RUN_S_MAX = 15


def is_available() -> bool:
    return bool(shutil.which("kcat")) or debian.is_available("kcat", PACKAGES)


def run(*arguments: str, stdin: bytes = b"") -> bytes:
    """Run kcat, assert that it succeeds, and return its output."""
    program, environment = shutil.which("kcat"), dict(os.environ)
    if program is None:
        root = debian.unpacked("kcat", PACKAGES)
        program, environment = str(root / "usr" / "bin" / "kcat"), debian.environment(root)
    done = subprocess.run(  # noqa: S603 - the arguments are a test's own.
        [program, *arguments],
        input=stdin,
        capture_output=True,
        env=environment,
        timeout=RUN_S_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout
