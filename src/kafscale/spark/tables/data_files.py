"""Reads the Parquet files of tables, and writes staged files.

`NamedColumnFiles` is the base of formats that identify columns by name; each format writes its
files itself. `StagedFiles` holds rows that are merged with others before a commit: they are stored
beside the data of a table, where readers do not see them, and no commit references them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from kafscale.spark.tables.base import DataFile
from kafscale.spark.tables.filesystem import TableFilesystem
from kafscale.spark.tables.time_partitions import TimeGranularity
from kafscale.spark.values import conform

BATCH_BYTES: Final = 16 * 1024 * 1024
BATCH_ROWS_MAX: Final = 64 * 1024
STAGING_DIRECTORY: Final = "_kafscale_staged"


def old_files(filesystem: TableFilesystem, directory: str, older_than_ms: int) -> list[DataFile]:
    """Return the files below a directory that were written before a time."""
    return [
        DataFile(item.key, 0, item.size_bytes)
        for item in filesystem.list(filesystem.join(directory))
        if item.modified_ms < older_than_ms
    ]


def read_batches(
    filesystem: TableFilesystem,
    path: str,
    is_selected: Callable[[pa.Field], bool] = lambda _column: True,
) -> Iterator[pa.RecordBatch]:
    """Read the selected columns of a file in batches of bounded size."""
    with filesystem.open(path) as source:
        file = pq.ParquetFile(source)
        columns = [column.name for column in file.schema_arrow if is_selected(column)]
        for group in range(file.num_row_groups):
            metadata = file.metadata.row_group(group)
            rows = max(metadata.num_rows * BATCH_BYTES // max(metadata.total_byte_size, 1), 1)
            yield from file.iter_batches(
                min(rows, BATCH_ROWS_MAX), row_groups=[group], columns=columns
            )


def read_bounds(
    filesystem: TableFilesystem, path: str, is_selected: Callable[[pa.Field], bool]
) -> tuple[Any, Any] | None:
    """Read the minimum and maximum of a column from the metadata; None if they are missing."""
    with filesystem.open(path) as source:
        metadata = pq.read_metadata(source)
    names = [column.name for column in metadata.schema.to_arrow_schema() if is_selected(column)]
    paths = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
    if not names or names[0] not in paths:
        return None
    index = paths.index(names[0])
    statistics = [
        metadata.row_group(group).column(index).statistics
        for group in range(metadata.num_row_groups)
    ]
    if not statistics or any(each is None or not each.has_min_max for each in statistics):
        return None
    return min(each.min for each in statistics), max(each.max for each in statistics)


@dataclass(frozen=True)
class NamedColumnFiles:
    """Reads and deletes files whose columns are identified by name."""

    schema: pa.Schema
    granularity: TimeGranularity | None
    filesystem: TableFilesystem

    def read(
        self, file: DataFile, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        schema = self.schema
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        for batch in read_batches(
            self.filesystem, file.path, lambda column: schema.get_field_index(column.name) >= 0
        ):
            yield conform(batch, schema)

    def bounds(self, file: DataFile, column: str) -> tuple[Any, Any] | None:
        return read_bounds(self.filesystem, file.path, lambda field: field.name == column)

    def discard(self, files: Sequence[DataFile]) -> None:
        self.filesystem.delete([file.path for file in files])


@dataclass(frozen=True)
class StagedFiles:
    """Writes and reads staged files."""

    schema: pa.Schema
    filesystem: TableFilesystem
    """The filesystem of the data of the table."""
    granularity: TimeGranularity | None = None

    def write(
        self, name: str, data: pa.Buffer, metadata: pq.FileMetaData, time_partition: int | None
    ) -> DataFile:
        path = self.filesystem.join(STAGING_DIRECTORY, name)
        self.filesystem.write(path, data)
        return DataFile(path, metadata.num_rows, data.size, time_partition)

    def read(
        self, file: DataFile, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        return read_batches(
            self.filesystem, file.path, lambda field: columns is None or field.name in columns
        )

    def bounds(self, file: DataFile, column: str) -> tuple[Any, Any] | None:
        return read_bounds(self.filesystem, file.path, lambda field: field.name == column)

    def discard(self, files: Sequence[DataFile]) -> None:
        self.filesystem.delete([file.path for file in files])
