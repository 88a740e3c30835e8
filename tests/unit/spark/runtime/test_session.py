"""Tests of the environment of sessions; tests/e2e/spark starts real ones."""

import os
import sys
from pathlib import Path

import pytest

from kafscale.errors import ConfigError
from kafscale.spark.runtime import session


def test_cache_directory(tmp_path):
    assert session.cache_directory({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "kafscale"
    assert session.cache_directory({}) == Path.home() / ".cache" / "kafscale"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch, tmp_path):
    """Remove the variables for the test."""
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("name", ["PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"])
def test_python_is_set_unless_it_is_given(monkeypatch, name):
    session.set_environment("local[2]")
    assert os.environ[name] == sys.executable
    assert (Path(os.environ["JAVA_HOME"]) / "bin" / "java").exists()
    monkeypatch.setenv(name, "python3.99")
    session.set_environment("local[2]")
    assert os.environ[name] == "python3.99"


def test_python_of_workers_is_not_set_on_a_cluster():
    session.set_environment("spark://head:7077")
    assert "PYSPARK_PYTHON" not in os.environ


def test_missing_pyspark_is_a_config_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(ConfigError, match=r"pip install 'kafscale\[spark\]'"):
        session.build_session("job")
