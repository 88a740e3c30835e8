"""`kafscale spark` without a Spark session: options, locations and output."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from kafscale.cli.commands.spark import session
from kafscale.cli.commands.spark.session import resolve_location
from kafscale.errors import ConfigError, InvalidRequestError, OperatingError
from kafscale.spark.runtime.job_result import JobResult


@pytest.fixture
def data_directory(kafscale):  # noqa: ARG001 - it gives an empty directory and environment.
    Path("kafscale-data/objects").mkdir(parents=True)
    return Path("kafscale-data").absolute()


def test_info_lists_packages_java_and_jars(kafscale, tmp_path):
    result = kafscale("spark", "info", "-o", "json", XDG_CACHE_HOME=str(tmp_path))
    info = json.loads(result.stdout)
    assert info["packages"]["pyspark"] == "4.2.0"
    assert info["jars"]["directory"] == str(tmp_path / "kafscale" / "spark-jars")
    shown = kafscale("spark", "info", XDG_CACHE_HOME=str(tmp_path), SPARK_HOME="/opt/spark").stdout
    for part in ("pyspark", "4.2.0", info["java"]["version"], "/opt/spark", "kafscale spark jars"):
        assert part in shown


def test_entry_is_a_file_that_runs_as_the_command(kafscale):
    file = kafscale("spark", "entry").stdout.strip()
    command = [sys.executable, file, "check", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert "Usage: kafscale spark check" in result.stdout


def test_help_needs_neither_spark_nor_the_decoder():
    code = (
        "import sys; from typer.testing import CliRunner; from kafscale.cli.main import app;"
        "CliRunner().invoke(app, ['spark', '--help']); print(*sys.modules)"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert {"pyspark", "numba", "pyarrow"}.isdisjoint(result.stdout.split())


# --- location of the records ----------------------------------------------------------------------


def test_default_location_is_that_of_the_settings(data_directory, monkeypatch):
    assert str(resolve_location("")) == f"{data_directory}/objects/default"
    monkeypatch.setenv("KAFSCALE_S3_BUCKET", "records")
    monkeypatch.setenv("KAFSCALE_S3_NAMESPACE", "live")
    assert str(resolve_location("")) == "s3://records/live"


def test_explicit_location_uses_the_bucket_settings(data_directory, monkeypatch):
    assert str(resolve_location(str(data_directory))) == f"{data_directory}/objects/default"
    monkeypatch.setenv("KAFSCALE_S3_BUCKET", "records")
    monkeypatch.setenv("KAFSCALE_S3_ENDPOINT", "http://store:9000")
    monkeypatch.setenv("KAFSCALE_S3_ACCESS_KEY", "AKIA")
    monkeypatch.setenv("KAFSCALE_S3_SECRET_KEY", "hidden")
    location = resolve_location("s3://other/live")
    assert str(location) == "s3://other/live"
    assert (location.bucket.endpoint, location.bucket.secret_key) == ("http://store:9000", "hidden")
    assert "hidden" not in repr(location)


def test_missing_or_in_memory_location_is_an_error(kafscale, monkeypatch):  # noqa: ARG001
    with pytest.raises(InvalidRequestError, match="not a data directory"):
        resolve_location("")
    monkeypatch.setenv("KAFSCALE_USE_MEMORY_S3", "1")
    with pytest.raises(ConfigError, match="memory of a broker"):
        resolve_location("")


# --- output ---------------------------------------------------------------------------------------


def test_summary_is_a_table_and_a_line(capsys):
    session.print_summary(
        JobResult(
            "merge",
            ("topic", "partition", "writtenBytes", "newestMs", "done"),
            (("orders", 1200, 2048, 1_700_000_000_123, True), ("logs", 0, None, None, False)),
            {"segmentCount": 12345, "seconds": 1.25},
            ("logs-0 was left alone",),
        )
    )
    printed = capsys.readouterr()
    header, _, first, second, _, last = printed.out.splitlines()
    assert header.split() == ["topic", "partition", "written", "newest", "done"]
    assert first.split() == ["orders", "1,200", "2.0", "KiB", "2023-11-14T22:13:20.123Z", "yes"]
    assert second.split() == ["logs", "0", "-", "-", "no"]
    assert last == "merge: segment count 12,345, seconds 1.2"
    assert printed.err == "error: logs-0 was left alone\n"


def test_summary_of_an_empty_result_is_done(capsys):
    session.print_summary(JobResult("merge"))
    assert capsys.readouterr().out == "merge: done\n"


@pytest.mark.parametrize(
    ("error", "is_explained"),
    [
        (OperatingError("Spark failed"), True),
        (KeyError("a defect"), True),
        (InvalidRequestError("no such topic"), False),
        (typer.Exit(1), False),
    ],
)
def test_spark_log_is_mentioned_for_unexpected_errors(error, is_explained):
    assert session._may_be_explained(error) is is_explained


def test_invalid_spark_setting_is_rejected(kafscale):
    result = kafscale("spark", "check", "--conf", "spark.ui.enabled", COLUMNS="200")
    assert result.exit_code == 2
    assert "key=value" in result.stderr
