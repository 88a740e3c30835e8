"""Tests specific to Iceberg: lost responses, and tables of other engines."""

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import BucketTransform

from kafscale.errors import InvalidRequestError, OperatingError
from kafscale.spark.tables.base import Change, Progress
from kafscale.spark.tables.iceberg import IcebergTable
from kafscale.spark.tables.time_partitions import TimeGranularity
from kafscale.spark.tables.writer import Encoding, FileWriter
from kafscale.spark.values import conform
from unit.spark.jobs.lake_tables import Tables, sql_catalog
from unit.spark.tables.table_rows import SCHEMA, rows, write


class LostResponses(SqlCatalog):
    """A catalog that loses the responses to commits; the commits too unless `commits`."""

    commits = True

    def commit_table(self, table, requirements, updates):
        if self.commits:
            super().commit_table(table, requirements, updates)
        raise TimeoutError("no response")


@pytest.fixture
def tables(tmp_path):
    created = Tables("iceberg", tmp_path)
    yield created
    created.close()


@pytest.fixture
def table(tables):
    return tables("orders", time_column="timestamp")


@pytest.mark.parametrize("commits", [True, False])
def test_commit_with_a_lost_response(tables, table, commits):
    version = table.create(SCHEMA, None)
    files = write(table, version, range(3))
    catalog = sql_catalog(tables.directory, LostResponses)
    catalog.commits = commits
    unreliable = IcebergTable(catalog, ("lake", "orders"), "orders", "timestamp")
    if commits:
        unreliable.commit(version_of(unreliable), Change(Progress({0: 3}), files))
        assert tables.rows("orders").num_rows == 3
    else:
        with pytest.raises(OperatingError, match="no response"):
            unreliable.commit(version_of(unreliable), Change(Progress({0: 3}), files))
        assert tables.rows("orders").num_rows == 0
        assert table.load().progress == Progress()
    catalog.close()


def version_of(table: IcebergTable):
    version = table.load()
    assert version is not None
    return version


def test_progress_survives_the_expiry_of_snapshots(table):
    table.create(SCHEMA, TimeGranularity.DAY)
    for number in range(3):
        version = table.load()
        table.commit(version, Change(Progress({0: number + 1}), write(table, version, [number])))
    assert table.expire(table.load(), 2**42) == 2
    assert table.load().progress.offsets == {0: 3}


def test_statistics_let_readers_skip_files(tables, table):
    table.create(SCHEMA, TimeGranularity.DAY)
    for start in (0, 100):
        version = table.load()
        files = write(table, version, range(start, start + 3))
        table.commit(version, Change(Progress({0: start + 3}), files))
    loaded = tables.catalog().load_table(("lake", "orders"))
    scan = loaded.scan(row_filter="id >= 102")
    assert scan.to_arrow().column("id").to_pylist() == [102]
    assert len(list(scan.plan_files())) == 1
    early = loaded.scan(row_filter="timestamp < '2023-11-15T00:00:00+00:00'")
    assert early.to_arrow().column("id").to_pylist() == [0, 1]
    assert len(list(early.plan_files())) == 1


def test_columns_are_widened_and_renamed(tables, table):
    """Files keep the field IDs of their columns when these are renamed."""
    narrow = pa.schema([("id", pa.int32()), *list(SCHEMA)[1:]])
    version = table.create(narrow, None)
    table.commit(version, Change(Progress({0: 2}), write_narrow(table, version)))
    wide = table.evolve(table.load(), SCHEMA)
    assert wide.schema == SCHEMA
    with tables.catalog().load_table(("lake", "orders")).update_schema() as update:
        update.rename_column("name", "title")
    version = table.load()
    files = table.files(version)
    (file,) = table.data_files(version)
    (batch,) = files.read(file)
    assert batch.column("id").to_pylist() == [1, 2]
    assert batch.column("title").to_pylist() == ["name 1", "name 2"]
    assert files.bounds(file, "title") == ("name 1", "name 2")


def write_narrow(table, version):
    files = table.files(version)
    writer = FileWriter(files, Encoding())
    batch = conform(rows([1, 2]), files.schema)
    writer.add(batch, batch.column("timestamp"))
    return list(writer.finish())


def test_load_rejects_other_partitioning(tables, table):
    tables.catalog().create_namespace("lake")
    loaded = tables.catalog().create_table(("lake", "orders"), SCHEMA)
    with loaded.update_spec() as spec:
        spec.add_field("id", BucketTransform(4), "id_bucket")
    with pytest.raises(InvalidRequestError, match="only hours, days or months of timestamp"):
        table.load()
