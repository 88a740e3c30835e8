"""Parquet files read back, in batches that are bounded by bytes."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from kafscale.spark.tables.filesystem import TableFilesystem
from kafscale.spark.values import conform

BATCH_BYTES: Final = 16 * 1024 * 1024
BATCH_ROWS_MAX: Final = 64 * 1024


def batches(
    filesystem: TableFilesystem,
    path: str,
    is_wanted: Callable[[pa.Field], bool] = lambda _column: True,
) -> Iterator[pa.RecordBatch]:
    """The rows of a file, with those of its columns that are wanted."""
    with filesystem.open(path) as source:
        file = pq.ParquetFile(source)
        columns = [column.name for column in file.schema_arrow if is_wanted(column)]
        for group in range(file.num_row_groups):
            about = file.metadata.row_group(group)
            rows = max(about.num_rows * BATCH_BYTES // max(about.total_byte_size, 1), 1)
            yield from file.iter_batches(
                min(rows, BATCH_ROWS_MAX), row_groups=[group], columns=columns
            )


def conformed(
    filesystem: TableFilesystem, path: str, schema: pa.Schema, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a file as a table of this schema has them, with some of its columns or all."""
    wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    for batch in batches(filesystem, path, lambda one: wanted.get_field_index(one.name) >= 0):
        yield conform(batch, wanted)


def bounds(
    filesystem: TableFilesystem, path: str, is_meant: Callable[[pa.Field], bool]
) -> tuple[Any, Any] | None:
    """Between which values a column lies, both included; None if the file does not say."""
    with filesystem.open(path) as source:
        metadata = pq.read_metadata(source)
    names = [column.name for column in metadata.schema.to_arrow_schema() if is_meant(column)]
    paths = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
    if not names or names[0] not in paths:
        return None
    index = paths.index(names[0])
    found = [
        metadata.row_group(group).column(index).statistics
        for group in range(metadata.num_row_groups)
    ]
    if not found or any(one is None or not one.has_min_max for one in found):
        return None
    return min(one.min for one in found), max(one.max for one in found)
