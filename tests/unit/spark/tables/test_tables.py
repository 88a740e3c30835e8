"""Tests of the invariants of tables, for all formats."""

import pickle

import pyarrow as pa
import pytest

from kafscale.errors import InvalidRequestError
from kafscale.spark.tables.base import Change, CommitConflictError, Progress
from kafscale.spark.tables.time_partitions import TimeGranularity
from unit.spark.jobs.lake_tables import Tables
from unit.spark.tables.table_rows import SCHEMA, rows, write

GRANULARITIES = [None, *TimeGranularity]


def ids(tables: Tables, name: str = "orders") -> list[int]:
    return sorted(tables.rows(name).column("id").to_pylist())


def open_table(tables: Tables, topic: str = "orders"):
    return tables(topic, time_column="timestamp")


def test_load_of_a_missing_table(tables):
    assert open_table(tables).load() is None


def test_create_twice_returns_the_first_table(tables):
    first = open_table(tables).create(SCHEMA, TimeGranularity.DAY)
    second = open_table(tables).create(pa.schema([("other", pa.int64())]), None)
    for version in (first, second, open_table(tables).load()):
        assert version.schema == SCHEMA
        assert version.granularity is TimeGranularity.DAY
        assert version.progress == Progress()


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_commit_stores_rows_and_progress(tables, granularity):
    table = open_table(tables)
    version = table.create(SCHEMA, granularity)
    progress = Progress({0: 30, 7: 2**40}, 2**63 - 1)
    table.commit(version, Change(progress, write(table, version, range(30))))
    now = open_table(tables).load()
    assert now.progress == progress
    assert ids(tables) == list(range(30))
    table.commit(now, Change(Progress({0: 31}, 5)))
    assert open_table(tables).load().progress.offsets[0] == 31, "a commit without rows"
    assert ids(tables) == list(range(30))


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_conflicting_commit_is_rejected(tables, granularity):
    table, other = open_table(tables), open_table(tables)
    table.create(SCHEMA, granularity)
    version, other_version = table.load(), other.load()
    table.commit(version, Change(Progress({0: 5}), write(table, version, range(5))))
    files = write(other, other_version, range(5))
    with pytest.raises(CommitConflictError):
        other.commit(other_version, Change(Progress({0: 5}), files))
    with pytest.raises(CommitConflictError):
        table.commit(version, Change(Progress({0: 9})))
    other.files(other_version).discard(files)
    other.files(other_version).discard(files)
    assert ids(tables) == list(range(5))
    assert table.load().progress.offsets == {0: 5}


def test_progress_is_stored_by_topic(tables):
    orders = open_table(tables)
    version = orders.create(SCHEMA, None)
    orders.commit(version, Change(Progress({0: 5})))
    payments = type(orders)(*_arguments(tables, orders))
    assert payments.load().progress == Progress()
    payments.commit(payments.load(), Change(Progress({0: 7})))
    assert orders.load().progress.offsets == {0: 5}


def _arguments(tables, table):
    if tables.kind == "iceberg":
        return (tables.catalog(), ("lake", "orders"), "payments", "timestamp")
    return (table.files(table.load()).filesystem, "payments")


def test_commit_without_progress_keeps_it(tables):
    table = open_table(tables)
    version = table.create(SCHEMA, None)
    table.commit(version, Change(Progress({0: 5}, 1)))
    now = table.load()
    table.commit(now, Change(None, write(table, now, range(3))))
    assert table.load().progress == Progress({0: 5}, 1)
    assert ids(tables) == [0, 1, 2]


def test_evolve_adds_columns(tables):
    table = open_table(tables)
    version = table.create(SCHEMA, None)
    table.commit(version, Change(Progress({0: 2}), write(table, version, range(2))))
    wider = SCHEMA.append(pa.field("price", pa.float64()))
    evolved = table.evolve(table.load(), wider)
    assert evolved.schema == wider == table.load().schema
    assert evolved.progress.offsets == {0: 2}
    assert ids(tables) == [0, 1]


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_rows_read_back_equal(changing_tables, granularity):
    """Also from files written before a column was added; null lists stay null."""
    table = open_table(changing_tables)
    version = table.create(SCHEMA, granularity)
    table.commit(version, Change(Progress({0: 2}), write(table, version, range(30))))
    wider = SCHEMA.append(pa.field("price", pa.float64()))
    version = table.evolve(table.load(), wider)
    packed = pickle.dumps((table.files(version), table.data_files(version)))
    files, current = pickle.loads(packed)  # noqa: S301 - our own.
    result = [row for file in current for batch in files.read(file) for row in batch.to_pylist()]
    expected = [{**row, "price": None} for row in rows(range(30)).to_pylist()]
    assert sorted(result, key=lambda row: row["id"]) == expected
    some = [
        row for file in current for batch in files.read(file, ["id"]) for row in batch.to_pylist()
    ]
    assert sorted(row["id"] for row in some) == list(range(30))
    assert sum(file.record_count for file in current) == 30
    bounds = [files.bounds(file, "id") for file in current]
    assert min(low for low, _ in bounds) == 0
    assert max(high for _, high in bounds) == 29
    assert files.bounds(current[0], "price") is None


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_commit_replaces_files(changing_tables, granularity):
    table = open_table(changing_tables)
    version = table.create(SCHEMA, granularity)
    table.commit(version, Change(Progress({0: 2}), write(table, version, [1, 2])))
    version = table.load()
    old = table.data_files(version)
    table.commit(version, Change(Progress({0: 3}), write(table, version, [3]), old))
    version = table.load()
    assert ids(changing_tables) == [3]
    assert version.progress.offsets == {0: 3}
    assert not {file.path for file in old} & {file.path for file in table.data_files(version)}


def test_plain_parquet_files_cannot_be_replaced(tmp_path):
    tables = Tables("parquet", tmp_path)
    table = open_table(tables)
    with pytest.raises(InvalidRequestError, match="use Iceberg or Delta"):
        table.data_files(table.create(SCHEMA, None))
