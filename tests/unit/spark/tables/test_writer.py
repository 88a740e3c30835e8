"""Files of the right size, split by time, with bounded memory."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafscale.spark.tables.filesystem import TableFilesystem
from kafscale.spark.tables.staging import StagedFiles
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
    for some in numbers:
        batch = rows(some)
        writer.add(batch, batch.column("timestamp"))
    return list(writer.finish())


def test_rows_of_many_batches_become_one_file(tmp_path):
    target = files(tmp_path)
    (file,) = fill(FileWriter(target, Encoding()), range(3), range(3, 5))
    assert file.record_count == 5
    (batch,) = target.read(file)
    assert batch.equals(rows(range(5)))
    assert pq.read_metadata(file.path).num_row_groups == 1


def test_nothing_makes_no_file(tmp_path):
    assert fill(FileWriter(files(tmp_path), Encoding()), range(0)) == []


def test_large_files_are_closed(tmp_path):
    small = Encoding(row_group_bytes=1, file_bytes=1)
    made = fill(FileWriter(files(tmp_path), small), range(2), range(2, 4), range(4, 5))
    assert [file.record_count for file in made] == [2, 2, 1]
    groups = Encoding(row_group_bytes=1)
    (file,) = fill(FileWriter(files(tmp_path), groups), range(2), range(2, 4))
    assert pq.read_metadata(file.path).num_row_groups == 2


def test_a_file_is_of_one_moment(tmp_path):
    target = files(tmp_path, TimeGranularity.DAY)
    made = fill(FileWriter(target, Encoding()), range(20), range(20, 30))
    assert [(file.time_partition, file.record_count) for file in made] == [
        (19675, 2),
        (19676, 24),
        (19677, 4),
    ]
    found = [row["id"] for file in made for batch in target.read(file) for row in batch.to_pylist()]
    assert found == list(range(30))


def test_many_moments_do_not_fill_the_memory(tmp_path):
    writer = FileWriter(files(tmp_path, TimeGranularity.HOUR), Encoding())
    made = fill(writer, range(OPEN_MAX + 5))
    assert sum(file.record_count for file in made) == OPEN_MAX + 5
    assert len({file.time_partition for file in made}) == OPEN_MAX + 5


def test_what_is_abandoned_is_gone(tmp_path):
    writer = FileWriter(files(tmp_path), Encoding(row_group_bytes=1, file_bytes=1))
    batch = rows(range(3))
    writer.add(batch, batch.column("timestamp"))
    assert list(tmp_path.rglob("*.parquet"))
    writer.abandon()
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize("compression", ["zstd", "snappy", "lz4", "none"])
def test_compressions(tmp_path, compression):
    target = files(tmp_path)
    how = Encoding(compression=compression, plain=("name",), counting=("id", "timestamp"))
    (file,) = fill(FileWriter(target, how), range(50))
    (batch,) = target.read(file)
    assert batch.equals(rows(range(50)))


@pytest.mark.parametrize("granularity", list(TimeGranularity))
def test_moments_before_1970_and_their_names(granularity):
    times = pa.array([-1, 0, -(40 * 86_400_000_000)], pa.timestamp("us", tz="UTC"))
    batch = pa.RecordBatch.from_arrays([pa.array([0, 1, 2])], ["row"])
    found = {
        time_partition: part.column("row").to_pylist()
        for time_partition, part in split_by_time(batch, times, granularity)
    }
    assert found[0] == [1]
    assert found[-1] == [0]
    assert sum(map(len, found.values())) == 3
    for number in (*found, 400_000):
        assert parse_partition(format_partition(number, granularity), granularity) == number
