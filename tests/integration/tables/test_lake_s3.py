"""The lake in a bucket: every table format, exactly once, with maintenance.

The server is moto: the S3 server of the other tests fails to parse requests of Arrow's client on
connections that are kept alive.
"""

from collections.abc import Iterator
from contextlib import closing, suppress

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow.dataset import dataset
from pyarrow.fs import S3FileSystem
from pyiceberg.catalog.sql import SqlCatalog

from kafscale.spark.jobs.lake.job import LakeJob
from kafscale.spark.jobs.lake.settings import LakeSettings
from kafscale.spark.source.subscription import Subscription
from kafscale.spark.tables.maintenance import MaintenanceOptions
from kafscale.spark.tables.target import TableFormat, Target
from kafscale.spark.tables.time_partitions import TimeGranularity
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from services import s3_server
from services.selection import long_except
from unit.spark.jobs.lake_log import LakeLog, raw_rows
from unit.spark.jobs.lake_runs import Killed, inline, killer

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def bucket(tmp_path_factory) -> Iterator[S3Bucket]:
    with s3_server.moto_server(tmp_path_factory.mktemp("s3")) as server_bucket:
        yield server_bucket


def properties(bucket: S3Bucket) -> dict[str, str]:
    return {
        "s3.endpoint": bucket.endpoint,
        "s3.region": bucket.region,
        "s3.access-key-id": bucket.access_key,
        "s3.secret-access-key": bucket.secret_key,
    }


def target_in(bucket: S3Bucket, table_format: TableFormat, tmp_path) -> Target:
    given = properties(bucket)
    if table_format is TableFormat.ICEBERG:
        given |= {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db"}
    path = f"s3://{bucket.name}/{tmp_path.name}"
    return Target(table_format=table_format, path=path, properties=given)


def rows(bucket: S3Bucket, target: Target) -> pa.Table:
    """The table as other readers see it."""
    if target.table_format is TableFormat.ICEBERG:
        with closing(SqlCatalog("kafscale", **target.properties)) as catalog:
            return catalog.load_table(("kafscale", "orders")).scan().to_arrow()
    if target.table_format is TableFormat.DELTA:
        options = {
            "AWS_ENDPOINT_URL": bucket.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": bucket.access_key,
            "AWS_SECRET_ACCESS_KEY": bucket.secret_key,
            "AWS_REGION": bucket.region,
        }
        return DeltaTable(f"{target.path}/orders", storage_options=options).to_pyarrow_table()
    system = S3FileSystem(
        endpoint_override=bucket.endpoint,
        access_key=bucket.access_key,
        secret_key=bucket.secret_key,
        region=bucket.region,
    )
    directory = f"{target.path.removeprefix('s3://')}/orders"
    return dataset(directory, filesystem=system, partitioning="hive").to_table()


@pytest.mark.parametrize("table_format", long_except(TableFormat, TableFormat.ICEBERG.__eq__))
def test_tables_are_exactly_once_despite_crashes_and_races(bucket, tmp_path, table_format):
    log = LakeLog(tmp_path / "data")
    log.fill("orders", partitions=2, count=13)
    target = target_in(bucket, table_format, tmp_path)
    is_plain = table_format is TableFormat.PARQUET

    def run(on_step=lambda _step: None, records_max: int = 9) -> None:
        settings = LakeSettings(
            location=log.location,
            subscription=Subscription.to_topics("orders"),
            is_once=True,
            commit_records_max=records_max,
            granularity=TimeGranularity.DAY,
            maintenance=MaintenanceOptions(merges_files=not is_plain, expires_after_ms=0),
        )
        LakeJob(settings, target, inline, on_step=on_step).run()

    def run_concurrently(step: str) -> None:
        if step == "written":
            run(records_max=5)

    for count in (3, 4, 5):
        with suppress(Killed):
            run(killer(count))
    run(run_concurrently)
    assert raw_rows(rows(bucket, target)) == log.rows("orders")
    log.fill("orders", partitions=2, count=3)
    run()
    assert raw_rows(rows(bucket, target)) == log.rows("orders")
    if target.table_format is TableFormat.ICEBERG:
        target._catalog.close()
