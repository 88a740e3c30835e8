"""Fetches the jars of Spark's own Kafka connector from Maven, and caches them.

Ivy, which comes with Spark, fetches them from Maven Central or from the repository of a settings
file. Jars are fetched without their dependencies, because Spark contains the rest. The token
provider has to be that of 4.0.0, because 4.2.0 is not available everywhere. (It provides Kerberos
delegation tokens; the classes that the connector uses are the same.) `spark.jars.packages` would
require 4.2.0.

Invariant: a cached jar is complete, with a verified checksum. If a jar cannot be fetched, the error
says which one and why.
"""

import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec

from kafscale.errors import ConfigError, StoreUnavailableError

FETCH_TIMEOUT_S: Final = 600


class Coordinate(msgspec.Struct, frozen=True):
    """The Maven coordinate of a jar."""

    group: str
    artifact: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


KAFKA_CONNECTOR: Final = (
    Coordinate("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    Coordinate("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    Coordinate("org.apache.kafka", "kafka-clients", "3.9.2"),
    Coordinate("org.apache.commons", "commons-pool2", "2.13.1"),
)
"""Spark's own source and sink for Kafka, with the dependencies that Spark lacks."""

_SETTINGS: Final = """<ivysettings>
  <settings defaultResolver="central"/>
  <caches defaultCacheDir="{cache}"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""
# Without these settings Ivy searches ~/.m2 first, and fails at a POM without its jar, which other
# runs of Maven may leave there.

_MODULE: Final = """<ivy-module version="2.0">
  <info organisation="kafscale" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
_DEPENDENCY: Final = (
    '    <dependency org="{0.group}" name="{0.artifact}" rev="{0.version}"'
    ' transitive="false" conf="default->master"/>'
)


def jar_directory(cache: Path) -> Path:
    """Return the directory of cached jars."""
    return cache / "spark-jars"


def cached(coordinates: Sequence[Coordinate], cache: Path) -> list[Path]:
    """Return the jars if all of them are cached, else an empty list."""
    jars = [jar_directory(cache) / each.file_name for each in coordinates]
    return jars if all(jar.is_file() for jar in jars) else []


def fetch(
    coordinates: Sequence[Coordinate], cache: Path, java_home: Path, settings: Path | None = None
) -> list[Path]:
    """Return the jars, fetching them if needed; `settings` is an Ivy settings file."""
    if jars := cached(coordinates, cache):
        return jars
    directory = jar_directory(cache)
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory) as name:
        workspace = Path(name)
        _run_ivy(coordinates, workspace, java_home, settings)
        for each in coordinates:
            fetched = workspace / each.file_name
            if not fetched.is_file():
                raise StoreUnavailableError(f"cannot fetch {each}: no such jar")
            fetched.replace(directory / each.file_name)
    return cached(coordinates, cache)


def _run_ivy(
    coordinates: Sequence[Coordinate], workspace: Path, java_home: Path, settings: Path | None
) -> None:
    if settings is None:
        settings = workspace / "settings.xml"
        settings.write_text(_SETTINGS.format(cache=workspace / "ivy"))
    module = workspace / "ivy.xml"
    dependencies = "\n".join(_DEPENDENCY.format(each) for each in coordinates)
    module.write_text(_MODULE.format(dependencies=dependencies))
    command: list[str | Path] = [
        java_home / "bin" / "java",
        "-jar",
        _ivy(),
        "-settings",
        settings,
        "-ivy",
        module,
        "-warn",
        "-retrieve",
        f"{workspace}/[artifact]-[revision].[ext]",
    ]
    names = ", ".join(map(str, coordinates))
    try:
        completed = subprocess.run(  # noqa: S603 - the command is ours.
            command, capture_output=True, text=True, check=False, timeout=FETCH_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise StoreUnavailableError(f"cannot fetch {names}: timed out") from None
    if completed.returncode != 0:
        raise StoreUnavailableError(f"cannot fetch {names}: {_reason(completed)}")


def _reason(completed: subprocess.CompletedProcess[str]) -> str:
    """Return the error of Ivy on one line."""
    lines = [line.strip(" :\t") for line in f"{completed.stdout}\n{completed.stderr}".splitlines()]
    reasons = [line for line in lines if "not found" in line or "unresolved" in line.lower()]
    return "; ".join(dict.fromkeys(reasons or [line for line in lines if line][-3:]))


def _ivy() -> Path:
    """Return the Ivy jar of Spark."""
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise ConfigError("Spark is not installed: pip install 'kafscale[spark]'")
    jars = sorted((Path(spark.origin).parent / "jars").glob("ivy-*.jar"))
    if not jars:
        raise ConfigError(f"the jars of {spark.origin} do not include Ivy")
    return jars[-1]
