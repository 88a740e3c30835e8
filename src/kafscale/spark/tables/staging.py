"""Files on their way into a table: rows that are still to be put together with others.

They lie beside the table's own, where no reader looks, and no commit ever names them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from kafscale.spark.tables import parquet_reader
from kafscale.spark.tables.base import DataFile
from kafscale.spark.tables.filesystem import TableFilesystem
from kafscale.spark.tables.time_partitions import TimeGranularity

STAGED: Final = "_kafscale_staged"


@dataclass(frozen=True)
class StagedFiles:
    """How such files are written and read."""

    schema: pa.Schema
    filesystem: TableFilesystem
    """Of the table's data."""
    granularity: TimeGranularity | None = None

    def write(
        self, name: str, data: pa.Buffer, metadata: pq.FileMetaData, time_partition: int | None
    ) -> DataFile:
        path = self.filesystem.join(STAGED, name)
        self.filesystem.write(path, data)
        return DataFile(path, metadata.num_rows, data.size, time_partition)

    def read(
        self, file: DataFile, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        return parquet_reader.batches(
            self.filesystem, file.path, lambda one: columns is None or one.name in columns
        )

    def bounds(self, file: DataFile, column: str) -> tuple[Any, Any] | None:
        return parquet_reader.bounds(self.filesystem, file.path, lambda one: one.name == column)

    def discard(self, files: Sequence[DataFile]) -> None:
        self.filesystem.delete([file.path for file in files])
