"""Tests specific to Delta: log, statistics, and tables of other engines."""

import json

import pyarrow as pa
import pytest
from deltalake import DeltaTable as LoadedTable
from deltalake import write_deltalake

from kafscale.errors import InvalidRequestError
from kafscale.spark.tables.base import Change, Progress
from kafscale.spark.tables.delta import DeltaTable
from kafscale.spark.tables.filesystem import TableFilesystem
from kafscale.spark.tables.time_partitions import TimeGranularity
from unit.spark.tables.table_rows import SCHEMA, write


@pytest.fixture
def table(tmp_path):
    return DeltaTable(TableFilesystem.of(str(tmp_path / "orders")), "orders")


def fill(table, *commits):
    for number, numbers in enumerate(commits):
        version = table.load()
        table.commit(version, Change(Progress({0: number + 1}), write(table, version, numbers)))


def test_progress_survives_log_cleanup(table, tmp_path):
    table.create(SCHEMA, None)
    fill(table, [1], [2], [3])
    LoadedTable(table.name).create_checkpoint()
    for entry in (tmp_path / "orders" / "_delta_log").glob("0*.json"):
        entry.unlink()
    assert table.load().progress.offsets == {0: 3}
    assert LoadedTable(table.name).to_pyarrow_table().num_rows == 3


def test_statistics_of_files(table):
    table.create(SCHEMA, TimeGranularity.DAY)
    fill(table, range(1, 4))
    actions = pa.table(LoadedTable(table.name).get_add_actions(flatten=True)).to_pylist()
    result = {action["partition.kafscale_day"].isoformat(): action for action in actions}
    first = result["2023-11-14"]
    assert (first["num_records"], first["min.id"], first["max.id"]) == (1, 1, 1)
    second = result["2023-11-15"]
    assert (second["min.id"], second["max.id"], second["null_count.name"]) == (2, 3, 0)
    assert second["min.name"] == "name 2"
    assert second["min.timestamp"].timestamp() * 1000 == 1_700_000_000_000 + 2 * 3_600_000


def test_partition_is_a_column_for_readers(table):
    table.create(SCHEMA, TimeGranularity.HOUR)
    fill(table, [0, 1])
    rows = LoadedTable(table.name).to_pyarrow_table(
        filters=[("kafscale_hour", "=", "2023-11-14-23")]
    )
    assert rows.column("id").to_pylist() == [1]


def test_commits_store_progress_as_transactions(table, tmp_path):
    table.create(SCHEMA, None)
    fill(table, [1])
    entry = tmp_path / "orders" / "_delta_log" / "00000000000000000001.json"
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    applications = {one["txn"]["appId"]: one["txn"]["version"] for one in actions if "txn" in one}
    assert applications == {"kafscale/orders/0": 1, "kafscale/orders/partitions": 1}


def test_evolve_rejects_type_changes(table):
    version = table.create(pa.schema([("id", pa.int32())]), None)
    with pytest.raises(
        InvalidRequestError, match="column id is int32; Delta cannot change it to int64"
    ):
        table.evolve(version, pa.schema([("id", pa.int64())]))


def test_load_rejects_other_partitioning(table):
    write_deltalake(table.name, pa.table({"a": [1], "b": [2]}), partition_by=["a"])
    with pytest.raises(InvalidRequestError, match="partitioned by a: only the columns"):
        table.load()
