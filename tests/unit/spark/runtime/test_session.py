"""What a session is given before anything is started; real ones are in the tests of Spark."""

import os
import sys
from pathlib import Path

import pytest

from kafscale.errors import ConfigError
from kafscale.spark.runtime import session


def test_the_cache_is_where_the_machine_keeps_such_things(tmp_path):
    assert session.cache_directory({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "kafscale"
    assert session.cache_directory({}) == Path.home() / ".cache" / "kafscale"


@pytest.fixture(autouse=True)
def _environment(monkeypatch, tmp_path):
    """One that says nothing, and is put back."""
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("name", ["PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"])
def test_workers_run_our_python_unless_another_is_wanted(monkeypatch, name):
    session.prepare("local[2]")
    assert os.environ[name] == sys.executable
    assert (Path(os.environ["JAVA_HOME"]) / "bin" / "java").exists()
    monkeypatch.setenv(name, "python3.99")
    session.prepare("local[2]")
    assert os.environ[name] == "python3.99"


def test_on_a_cluster_python_may_be_anywhere():
    session.prepare("spark://head:7077")
    assert "PYSPARK_PYTHON" not in os.environ


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(ConfigError, match=r"pip install 'kafscale\[spark\]'"):
        session.build_session("job")
