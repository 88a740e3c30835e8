"""Tests of the jar cache; tests/e2e/spark runs Ivy itself."""

from pathlib import Path

import pytest

from kafscale.errors import StoreUnavailableError
from kafscale.spark.runtime import maven
from kafscale.spark.runtime.maven import Coordinate

COORDINATES = [Coordinate("org.example", "one", "1.0"), Coordinate("org.example", "two", "2.0")]
FETCH_SCRIPT = (
    'for last; do :; done; for name in one-1.0 two-2.0; do echo jar > "${last%/*}/$name.jar"; done'
)


def fake_java(home: Path, script: str) -> Path:
    """Install a script in place of Java that acts like Ivy."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return home


def test_connector_version_matches_pyspark():
    from importlib.metadata import version

    spark, *_ = maven.KAFKA_CONNECTOR
    assert spark.version == version("pyspark")
    assert str(spark) == "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"


def test_fetch_caches_jars(tmp_path):
    cache = tmp_path / "cache"
    assert maven.cached(COORDINATES, cache) == []
    fetched = maven.fetch(COORDINATES, cache, fake_java(tmp_path / "java", FETCH_SCRIPT))
    assert [jar.name for jar in fetched] == ["one-1.0.jar", "two-2.0.jar"]
    assert all(jar.read_text() == "jar\n" for jar in fetched)
    assert maven.fetch(COORDINATES, cache, Path("/no/java")) == fetched
    assert maven.cached(COORDINATES[:1], cache) == fetched[:1]
    assert sorted(maven.jar_directory(cache).iterdir()) == sorted(fetched)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo ':: org.example#one;1.0: not found'; exit 1", "org.example#one;1.0: not found"),
        ("echo 'no route to host' >&2; exit 1", "no route to host"),
        ("exit 0", "no such jar"),
    ],
)
def test_failed_fetch_names_the_jar_and_leaves_no_files(tmp_path, script, reason):
    cache = tmp_path / "cache"
    with pytest.raises(StoreUnavailableError, match=r"org\.example:one:1\.0") as error:
        maven.fetch(COORDINATES, cache, fake_java(tmp_path / "java", script))
    assert reason in str(error.value)
    assert list(maven.jar_directory(cache).iterdir()) == []
