"""Files of a table that lie in a filesystem under their own paths: how they are read and discarded.

How they are written, and what has to be known of them besides, is each format's own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kafscale.spark.tables import parquet_reader
from kafscale.spark.tables.base import DataFile
from kafscale.spark.tables.filesystem import TableFilesystem
from kafscale.spark.tables.time_partitions import TimeGranularity


@dataclass(frozen=True)
class StoredFiles:
    """The part of `Files` that is the same wherever columns are known by their names."""

    schema: pa.Schema
    granularity: TimeGranularity | None
    filesystem: TableFilesystem

    def read(
        self, file: DataFile, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        return parquet_reader.conformed(self.filesystem, file.path, self.schema, columns)

    def bounds(self, file: DataFile, column: str) -> tuple[Any, Any] | None:
        return parquet_reader.bounds(self.filesystem, file.path, lambda one: one.name == column)

    def discard(self, files: Sequence[DataFile]) -> None:
        self.filesystem.delete([file.path for file in files])
