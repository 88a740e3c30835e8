"""Jars by their Maven coordinates, kept in a cache: what Spark's own Kafka connector consists of.

Ivy, which comes with Spark, fetches them from Maven Central or from wherever a settings file of the
user's says. Jars are fetched once, named one by one and without what they depend on: all else is in
Spark already, and the token provider has to be the one of 4.0.0, because that of 4.2.0 is not to
be had everywhere. (It hands out Kerberos delegation tokens; the classes that the connector uses are
the same.) Spark's own `spark.jars.packages` would insist on 4.2.0.

The law: a jar in the cache is whole, its checksum compared, or it is not there. Where one cannot be
fetched, the error says which and why.
"""

import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec

from kafscale.errors import ConfigError, StoreUnavailableError

FETCH_S_MAX: Final = 600


class Coordinate(msgspec.Struct, frozen=True):
    """The name of a jar at Maven."""

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
"""Spark's own source and sink for Kafka, with what Spark does not bring already."""

_SETTINGS: Final = """<ivysettings>
  <settings defaultResolver="central"/>
  <caches defaultCacheDir="{cache}"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""
# Without these settings Ivy would look into ~/.m2 first, where a description without its jar, left
# by any run of Maven, makes it fail.

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


def directory_of(cache: Path) -> Path:
    """Where jars are kept."""
    return cache / "spark-jars"


def kept(coordinates: Sequence[Coordinate], cache: Path) -> list[Path]:
    """The jars, if all of them are there already; else none."""
    jars = [directory_of(cache) / each.file_name for each in coordinates]
    return jars if all(jar.is_file() for jar in jars) else []


def fetch(
    coordinates: Sequence[Coordinate], cache: Path, java_home: Path, settings: Path | None = None
) -> list[Path]:
    """The jars, fetched if they are not there yet; `settings` are Ivy's, for a mirror."""
    if jars := kept(coordinates, cache):
        return jars
    directory = directory_of(cache)
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory) as made:
        room = Path(made)
        _run_ivy(coordinates, room, java_home, settings)
        for each in coordinates:
            fetched = room / each.file_name
            if not fetched.is_file():
                raise StoreUnavailableError(f"{each} cannot be fetched: there is no such jar")
            fetched.replace(directory / each.file_name)
    return kept(coordinates, cache)


def _run_ivy(
    coordinates: Sequence[Coordinate], room: Path, java_home: Path, settings: Path | None
) -> None:
    if settings is None:
        settings = room / "settings.xml"
        settings.write_text(_SETTINGS.format(cache=room / "ivy"))
    module = room / "ivy.xml"
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
        f"{room}/[artifact]-[revision].[ext]",
    ]
    names = ", ".join(map(str, coordinates))
    try:
        done = subprocess.run(  # noqa: S603 - the command is ours.
            command, capture_output=True, text=True, check=False, timeout=FETCH_S_MAX
        )
    except subprocess.TimeoutExpired:
        raise StoreUnavailableError(f"{names} cannot be fetched: it takes too long") from None
    if done.returncode != 0:
        raise StoreUnavailableError(f"{names} cannot be fetched: {_reason(done)}")


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """What Ivy complains of, on one line."""
    said = [line.strip(" :\t") for line in f"{done.stdout}\n{done.stderr}".splitlines()]
    telling = [line for line in said if "not found" in line or "unresolved" in line.lower()]
    return "; ".join(dict.fromkeys(telling or [line for line in said if line][-3:]))


def _ivy() -> Path:
    """Ivy as it comes with Spark."""
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise ConfigError("Spark is not installed: pip install 'kafscale[spark]'")
    found = sorted((Path(spark.origin).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise ConfigError(f"there is no Ivy among the jars of {spark.origin}")
    return found[-1]
