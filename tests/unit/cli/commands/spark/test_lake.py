"""`kafscale spark lake` without a Spark session: its options and the resulting settings."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from kafscale.cli.commands.spark.lake import Request
from kafscale.errors import ConfigError, InvalidRequestError
from kafscale.spark.jobs.lake.settings import UPSERT_BYTES_MAX, Mode, Start
from kafscale.spark.read.location import Location
from kafscale.spark.tables.target import TableFormat
from kafscale.spark.tables.time_partitions import TimeGranularity
from kafscale.storage.objects.s3.bucket_config import S3Bucket

BUCKET = Location(
    namespace="live",
    bucket=S3Bucket(name="records", endpoint="http://store", access_key="A", secret_key="hidden"),  # noqa: S106
)


def request_with(**changes: Any) -> Request:
    return Request(**({"topics": ["orders"], "to": "lake"} | changes))


def test_help_names_the_options_and_loads_little(kafscale):
    shown = kafscale("spark", "lake", "--help").stdout
    for option in ("--table-format", "--partition-by", "--registry", "--mode", "--once"):
        assert option in shown
    code = (
        "import sys; from typer.testing import CliRunner; from kafscale.cli.main import app;"
        "CliRunner().invoke(app, ['spark', 'lake', '--help']); print(*sys.modules)"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert {"pyspark", "numba", "pyarrow"}.isdisjoint(result.stdout.split())


def test_the_least_that_can_be_said():
    settings = request_with().settings(BUCKET)
    assert settings.subscription.names == {"orders"}
    assert settings.values is None
    assert (settings.mode, settings.start, settings.granularity) == (
        Mode.APPEND,
        Start.EARLIEST,
        None,
    )
    assert (settings.interval_ms, settings.commit_bytes_max) == (10_000, 4 * 2**30)
    assert not settings.is_once
    assert not settings.maintenance.is_enabled


def test_all_options_are_applied(tmp_path):
    schema = tmp_path / "schema"
    schema.write_text("id long")
    settings = request_with(
        topics=None,
        pattern="shop.*",
        value_format="json",
        schema=f"@{schema}",
        mode="upsert",
        key=["id"],
        partition_by="day",
        start="latest",
        skip_lost=True,
        once=True,
        interval="1m",
        commit_bytes="1Gi",
        commit_records=7,
        compression="snappy",
        compact_files=True,
        expire_snapshots=3,
    ).settings(BUCKET)
    assert settings.subscription.pattern == "shop.*"
    assert (settings.values.format, settings.values.schema) == ("json", "id long")
    assert (settings.mode, settings.keys, settings.granularity) == (
        Mode.UPSERT,
        ("id",),
        TimeGranularity.DAY,
    )
    assert settings.commit_bytes_max == UPSERT_BYTES_MAX
    assert settings.commit_records_max == 7
    assert settings.encoding.compression == "snappy"
    assert settings.maintenance.merges_files
    assert settings.maintenance.expires_after_ms == 3 * 86_400_000
    assert settings.is_once
    assert not settings.fail_on_data_loss


def test_registry_credentials_are_used_and_not_shown(tmp_path):
    file = tmp_path / "password"
    file.write_text("hidden\n")
    access = {"registry": "http://registry", "registry_user": "u", "registry_password_file": file}
    request = request_with(value_format="avro", **access)
    values = request.settings(BUCKET).values
    assert (values.format, values.registry.user) == ("avro", "u")
    assert values.registry.password == "hidden"  # noqa: S105
    assert "hidden" not in repr(values)
    assert "hidden" not in repr(request)


def test_tables_in_buckets_inherit_the_bucket_settings():
    target = request_with(to="s3://lake/x", table_format="delta").target(BUCKET)
    assert target.table_format is TableFormat.DELTA
    assert target.properties["s3.endpoint"] == "http://store"
    assert "hidden" not in repr(target)
    other = request_with(
        to="s3://lake/x", catalog_property=["s3.endpoint=http://other", "type=rest"]
    ).target(BUCKET)
    assert other.properties["s3.endpoint"] == "http://other"
    assert request_with(to="lake").target(BUCKET).properties == {}


def test_contradicting_options_are_rejected(tmp_path):
    for changes, error in (
        ({"topics": None}, typer.BadParameter),
        ({"pattern": "x"}, typer.BadParameter),
        ({"interval": "soon"}, typer.BadParameter),
        ({"commit_bytes": "much"}, typer.BadParameter),
        ({"schema": f"@{tmp_path / 'none'}"}, typer.BadParameter),
        ({"key": ["id"]}, InvalidRequestError),
        ({"mode": "upsert", "key": ["id"]}, InvalidRequestError),
        ({"schema": "id long"}, ConfigError),
        ({"value_format": "avro"}, ConfigError),
    ):
        with pytest.raises(error):
            request_with(**changes).settings(BUCKET)


@pytest.mark.parametrize("changes", [{"mode": "upsert"}, {"compact_files": True}])
def test_parquet_tables_are_append_only(changes):
    with pytest.raises(InvalidRequestError, match="append-only"):
        request_with(table_format="parquet", **changes).target(BUCKET)


def test_invalid_usage_is_reported_before_spark_starts(kafscale):
    Path("kafscale-data/objects").mkdir(parents=True)
    result = kafscale("spark", "lake", "orders")
    assert result.exit_code == 1
    assert "Iceberg needs a catalog, or a path" in result.stderr
    assert kafscale("spark", "lake", "--to", "lake").exit_code == 2
