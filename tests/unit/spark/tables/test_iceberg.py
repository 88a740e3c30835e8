"""What is special about Iceberg: answers that are lost, and tables that others have made."""

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


class LostAnswers(SqlCatalog):
    """A catalog whose answers to commits do not arrive; if `happens` is true, commits do."""

    happens = True

    def commit_table(self, table, requirements, updates):
        if self.happens:
            super().commit_table(table, requirements, updates)
        raise TimeoutError("no answer")


@pytest.fixture
def tables(tmp_path):
    made = Tables("iceberg", tmp_path)
    yield made
    made.close()


@pytest.fixture
def table(tables):
    return tables("orders", time_column="timestamp")


@pytest.mark.parametrize("happens", [True, False])
def test_an_answer_that_is_lost_is_looked_for(tables, table, happens):
    version = table.create(SCHEMA, None)
    files = write(table, version, range(3))
    catalog = sql_catalog(tables.directory, LostAnswers)
    catalog.happens = happens
    shaky = IcebergTable(catalog, ("lake", "orders"), "orders", "timestamp")
    if happens:
        shaky.commit(version_of(shaky), Change(Progress({0: 3}), files))
        assert tables.rows("orders").num_rows == 3
    else:
        with pytest.raises(OperatingError, match="no answer"):
            shaky.commit(version_of(shaky), Change(Progress({0: 3}), files))
        assert tables.rows("orders").num_rows == 0
        assert table.load().progress == Progress()
    catalog.close()


def version_of(table: IcebergTable):
    version = table.load()
    assert version is not None
    return version


def test_progress_survives_the_expiry_of_all_that_wrote_it(table):
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
    """Files keep the ids of their columns, whatever those are called by now."""
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


def test_a_table_with_other_partitions_is_refused(tables, table):
    tables.catalog().create_namespace("lake")
    loaded = tables.catalog().create_table(("lake", "orders"), SCHEMA)
    with loaded.update_spec() as spec:
        spec.add_field("id", BucketTransform(4), "id_bucket")
    with pytest.raises(InvalidRequestError, match="only hours, days or months of timestamp"):
        table.load()
