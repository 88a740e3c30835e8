"""Tests of the lake job with a real broker; tables are read by Spark and other libraries."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow.dataset import dataset
from pyiceberg.catalog.sql import SqlCatalog

from e2e.spark.records import Client, Row
from kafscale.spark.jobs.lake import job
from kafscale.spark.jobs.lake.settings import LakeSettings, Mode
from kafscale.spark.read.location import Location
from kafscale.spark.source.subscription import Subscription
from kafscale.spark.tables.target import TableFormat, Target
from kafscale.spark.tables.time_partitions import TimeGranularity
from kafscale.spark.values import ValueSpec
from services.broker import BrokerProcess
from services.selection import long_except

START_MS = 1_700_000_000_000
KILL_S_MAX = 120


@pytest.fixture(scope="module")
def broker(tmp_path_factory) -> Iterator[BrokerProcess]:
    directory = tmp_path_factory.mktemp("lake")
    with BrokerProcess(directory, segment_bytes="2000000") as running:
        yield running


@pytest.fixture(scope="module")
def mixed(broker) -> tuple[str, list[Row]]:
    """A topic in five codecs, and the records that a consumer reads."""
    client = Client(broker.address)
    client.create("mixed", 3, retention_ms="-1")  # Its records have old timestamps.
    client.produce_mixed("mixed", 3, START_MS, seed=7)
    return "mixed", client.consume(["mixed"])


def settings(broker: BrokerProcess, topics: str, **how: Any) -> LakeSettings:
    return LakeSettings(
        location=Location.parse(str(broker.data)),
        subscription=Subscription.to_topics(topics),
        is_once=True,
        **how,
    )


def read(table_format: TableFormat, path: Path, table: str) -> pa.Table:
    """Read a table with its own library."""
    if table_format is TableFormat.DELTA:
        return DeltaTable(str(path / table)).to_pyarrow_table()
    if table_format is TableFormat.PARQUET:
        return dataset(path / table, partitioning="hive").to_table()
    with closing(SqlCatalog("kafscale", uri=f"sqlite:///{path}/catalog.db")) as catalog:
        return catalog.load_table(("kafscale", table)).scan().to_arrow()


def as_rows(table: pa.Table) -> list[Row]:
    result = [
        Row(
            row["topic"],
            row["partition"],
            row["offset"],
            int(row["timestamp"].timestamp() * 1000 + 0.5),
            row["timestampType"],
            row["key"],
            row["value"],
            [(one["key"], one["value"]) for one in row["headers"] or ()],
        )
        for row in table.to_pylist()
    ]
    return sorted(result, key=lambda row: row[:3])


def without_null_headers(rows: list[Row]) -> list[Row]:
    """Replace null headers by empty lists, as pyiceberg does."""
    return [row._replace(headers=row.headers or []) for row in rows]


@pytest.mark.parametrize("table_format", list(TableFormat))
def test_table_has_every_record_once(spark, broker, mixed, tmp_path, table_format):
    topic, expected = mixed
    target = Target(table_format=table_format, path=str(tmp_path))
    requested = settings(
        broker,
        topic,
        granularity=TimeGranularity.DAY,
        commit_bytes_max=3_000_000,
        task_bytes=500_000,
    )
    done = job.run(spark, requested, target)
    assert done.rows[0][done.columns.index("records")] == len(expected)
    assert done.rows[0][done.columns.index("commits")] > 1
    assert as_rows(read(table_format, tmp_path, topic)) == without_null_headers(expected)
    again = job.run(spark, requested, target)
    assert not again.rows


def test_spark_reads_the_table(spark, broker, mixed, tmp_path):
    topic, expected = mixed
    requested = settings(broker, topic)
    job.run(spark, requested, Target(table_format=TableFormat.PARQUET, path=str(tmp_path)))
    frame = spark.read.parquet(str(tmp_path / topic))
    assert frame.count() == len(expected)
    assert frame.selectExpr("sum(offset)").first()[0] == sum(row.offset for row in expected)


def test_upsert_of_decoded_values(spark, broker, tmp_path):
    client = Client(broker.address)
    client.create("people", 2)
    for number in range(200):
        value = json.dumps({"id": number % 20, "name": f"name {number}"}).encode()
        client.produce("people", number % 2, [value], key=b"%d" % (number % 20))
    client.produce("people", 0, [b"not json"], key=b"x")
    target = Target(table_format=TableFormat.ICEBERG, path=str(tmp_path))
    requested = settings(
        broker,
        "people",
        values=ValueSpec(format="json"),
        mode=Mode.UPSERT,
        keys=("id",),
        commit_records_max=50,
    )
    job.run(spark, requested, target)
    rows = read(TableFormat.ICEBERG, tmp_path, "people").to_pylist()
    assert {row["id"]: row["name"] for row in rows} == {
        number % 20: f"name {number}" for number in range(180, 200)
    }
    assert len(rows) == 20
    dead = read(TableFormat.ICEBERG, tmp_path, "people_dead_letters").to_pylist()
    assert [row["value"] for row in dead] == [b"not json"]


# --- killed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("table_format", long_except(TableFormat, TableFormat.ICEBERG.__eq__))
def test_killed_driver_can_be_restarted(spark, broker, mixed, tmp_path, table_format):
    """The driver is killed after its first commit and started again."""
    topic, expected = mixed
    log = tmp_path / "killed.log"
    with log.open("wb") as output, command(broker, tmp_path, table_format, output) as process:
        try:
            deadline = time.monotonic() + KILL_S_MAX
            while not is_committed(tmp_path, table_format):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    target = Target(table_format=table_format, path=str(tmp_path))
    job.run(spark, settings(broker, topic), target)
    assert as_rows(read(table_format, tmp_path, topic)) == without_null_headers(expected)


def command(
    broker: BrokerProcess, directory: Path, table_format: TableFormat, output: IO[bytes]
) -> "subprocess.Popen[bytes]":
    """Start the command in its own process group."""
    words = [
        str(Path(sys.executable).with_name("kafscale")),
        "spark",
        "lake",
        "mixed",
        "--once",
        "--to",
        str(directory),
        "-t",
        str(table_format),
        "--path",
        str(broker.data),
        "--commit-bytes",
        "1MB",
        "--master",
        "local[1]",
        "-o",
        "json",
        "--conf",
        "spark.driver.memory=512m",
    ]
    return subprocess.Popen(  # noqa: S603 - the command is our own.
        words, stdout=output, stderr=output, start_new_session=True
    )


def is_committed(directory: Path, table_format: TableFormat) -> bool:
    """Whether a commit with rows exists."""
    if table_format is TableFormat.ICEBERG:
        return len(list(directory.rglob("snap-*.avro"))) >= 1
    if table_format is TableFormat.DELTA:
        return len(list(directory.rglob("_delta_log/*.json"))) >= 2
    return len(list(directory.rglob("_kafscale/commits/*.json"))) >= 2
