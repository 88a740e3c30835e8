"""Jars in a cache; Ivy itself is in the tests of Spark."""

from pathlib import Path

import pytest

from kafscale.errors import StoreUnavailableError
from kafscale.spark.runtime import maven
from kafscale.spark.runtime.maven import Coordinate

COORDINATES = [Coordinate("org.example", "one", "1.0"), Coordinate("org.example", "two", "2.0")]
FETCHING = (
    'for last; do :; done; for name in one-1.0 two-2.0; do echo jar > "${last%/*}/$name.jar"; done'
)


def java(home: Path, script: str) -> Path:
    """A program in place of Java that does what Ivy is to do, or fails as it does."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return home


def test_the_connector_fits_the_spark_that_is_installed():
    from importlib.metadata import version

    spark, *_ = maven.KAFKA_CONNECTOR
    assert spark.version == version("pyspark")
    assert str(spark) == "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"


def test_jars_are_fetched_once(tmp_path):
    cache = tmp_path / "cache"
    assert maven.kept(COORDINATES, cache) == []
    fetched = maven.fetch(COORDINATES, cache, java(tmp_path / "java", FETCHING))
    assert [jar.name for jar in fetched] == ["one-1.0.jar", "two-2.0.jar"]
    assert all(jar.read_text() == "jar\n" for jar in fetched)
    assert maven.fetch(COORDINATES, cache, Path("/no/java")) == fetched
    assert maven.kept(COORDINATES[:1], cache) == fetched[:1]
    assert sorted(maven.directory_of(cache).iterdir()) == sorted(fetched)


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("echo ':: org.example#one;1.0: not found'; exit 1", "org.example#one;1.0: not found"),
        ("echo 'no route to host' >&2; exit 1", "no route to host"),
        ("exit 0", "there is no such jar"),
    ],
)
def test_what_cannot_be_fetched_is_named_and_nothing_is_left(tmp_path, script, complaint):
    cache = tmp_path / "cache"
    with pytest.raises(StoreUnavailableError, match=r"org\.example:one:1\.0") as error:
        maven.fetch(COORDINATES, cache, java(tmp_path / "java", script))
    assert complaint in str(error.value)
    assert list(maven.directory_of(cache).iterdir()) == []
