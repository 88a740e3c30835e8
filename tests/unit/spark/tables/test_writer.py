"""Tests of the file writer: sizes, time partitions and memory."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafscale.spark.tables.data_files import StagedFiles
from kafscale.spark.tables.filesystem import TableFilesystem
from kafscale.spark.tables.time_partitions import (
    TimeGranularity,
    format_partition,
    parse_partition,
    split_by_time,
)
from kafscale.spark.tables.writer import OPEN_MAX, Encoding, FileWriter
from unit.spark.tables.table_rows import SCHEMA, rows


def files(tmp_path, granularity=None) -> StagedFiles:
    return StagedFiles(SCHEMA, TableFilesystem.of(str(tmp_path)), granularity)


def fill(writer: FileWriter, *numbers: range) -> list:
    for part in numbers:
        batch = rows(part)
        writer.add(batch, batch.column("timestamp"))
    return list(writer.finish())


def test_writer_joins_batches_in_one_file(tmp_path):
    target = files(tmp_path)
    (file,) = fill(FileWriter(target, Encoding()), range(3), range(3, 5))
    assert file.record_count == 5
    (batch,) = target.read(file)
    assert batch.equals(rows(range(5)))
    assert pq.read_metadata(file.path).num_row_groups == 1


def test_writer_creates_no_empty_file(tmp_path):
    assert fill(FileWriter(files(tmp_path), Encoding()), range(0)) == []


def test_writer_closes_large_files(tmp_path):
    small = Encoding(row_group_bytes=1, file_bytes=1)
    written = fill(FileWriter(files(tmp_path), small), range(2), range(2, 4), range(4, 5))
    assert [file.record_count for file in written] == [2, 2, 1]
    groups = Encoding(row_group_bytes=1)
    (file,) = fill(FileWriter(files(tmp_path), groups), range(2), range(2, 4))
    assert pq.read_metadata(file.path).num_row_groups == 2


def test_each_file_has_one_time_partition(tmp_path):
    target = files(tmp_path, TimeGranularity.DAY)
    written = fill(FileWriter(target, Encoding()), range(20), range(20, 30))
    assert [(file.time_partition, file.record_count) for file in written] == [
        (19675, 2),
        (19676, 24),
        (19677, 4),
    ]
    result = [
        row["id"] for file in written for batch in target.read(file) for row in batch.to_pylist()
    ]
    assert result == list(range(30))


def test_number_of_open_files_is_bounded(tmp_path):
    writer = FileWriter(files(tmp_path, TimeGranularity.HOUR), Encoding())
    written = fill(writer, range(OPEN_MAX + 5))
    assert sum(file.record_count for file in written) == OPEN_MAX + 5
    assert len({file.time_partition for file in written}) == OPEN_MAX + 5


def test_abandon_deletes_stored_files(tmp_path):
    writer = FileWriter(files(tmp_path), Encoding(row_group_bytes=1, file_bytes=1))
    batch = rows(range(3))
    writer.add(batch, batch.column("timestamp"))
    assert list(tmp_path.rglob("*.parquet"))
    writer.abandon()
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize("compression", ["zstd", "snappy", "lz4", "none"])
def test_compressions(tmp_path, compression):
    target = files(tmp_path)
    encoding = Encoding(compression=compression, plain=("name",), ascending=("id", "timestamp"))
    (file,) = fill(FileWriter(target, encoding), range(50))
    (batch,) = target.read(file)
    assert batch.equals(rows(range(50)))


@pytest.mark.parametrize("granularity", list(TimeGranularity))
def test_time_partitions_before_1970(granularity):
    times = pa.array([-1, 0, -(40 * 86_400_000_000)], pa.timestamp("us", tz="UTC"))
    batch = pa.RecordBatch.from_arrays([pa.array([0, 1, 2])], ["row"])
    result = {
        time_partition: part.column("row").to_pylist()
        for time_partition, part in split_by_time(batch, times, granularity)
    }
    assert result[0] == [1]
    assert result[-1] == [0]
    assert sum(map(len, result.values())) == 3
    for number in (*result, 400_000):
        assert parse_partition(format_partition(number, granularity), granularity) == number
