"""The files of a Delta table: Parquet without the column that the table is partitioned by."""

import time
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from kafscale.spark.tables.base import DataFile
from kafscale.spark.tables.stored_files import StoredFiles
from kafscale.spark.tables.time_partitions import partition_directory

TEXT_MAX: Final = 32
"""Longer texts have no bounds: cut ones would have to be rounded."""

_MILLISECOND: Final = timedelta(milliseconds=1)


class DeltaFiles(StoredFiles):
    """How files of one version of a table are written and read."""

    def write(
        self, name: str, data: pa.Buffer, metadata: pq.FileMetaData, time_partition: int | None
    ) -> DataFile:
        directory = partition_directory(time_partition, self.granularity)
        path = self.filesystem.join(directory, name)
        self.filesystem.write(path, data)
        details = {"statistics": statistics(metadata), "modified_ms": time.time_ns() // 1_000_000}
        return DataFile(path, metadata.num_rows, data.size, time_partition, details)


def statistics(metadata: pq.FileMetaData) -> str:
    """What Delta keeps of a file's columns, as JSON: how many nulls, the least, the greatest."""
    nulls: dict[str, int] = {}
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    for column in range(metadata.num_columns):
        if "." in metadata.schema.column(column).path:
            continue
        name = metadata.schema.column(column).path
        found = [
            metadata.row_group(group).column(column).statistics
            for group in range(metadata.num_row_groups)
        ]
        if not found or any(one is None or not one.has_null_count for one in found):
            continue
        nulls[name] = sum(one.null_count for one in found)
        bounded = [one for one in found if one.has_min_max]
        # A row group of nulls only has no bounds, and needs none.
        if not bounded or any(not one.has_min_max and one.num_values for one in found):
            continue
        low = _bound(min(one.min for one in bounded), is_upper=False)
        high = _bound(max(one.max for one in bounded), is_upper=True)
        if low is not None and high is not None:
            least[name], greatest[name] = low, high
    document = {
        "numRecords": metadata.num_rows,
        "minValues": least,
        "maxValues": greatest,
        "nullCount": nulls,
    }
    return msgspec.json.encode(document).decode()


def _bound(value: Any, *, is_upper: bool) -> Any:
    """A bound as Delta writes it; None if it has none of this type."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        return value if len(value) <= TEXT_MAX else None
    if isinstance(value, datetime):
        if is_upper and value.microsecond % 1000:  # Delta counts milliseconds.
            value += _MILLISECOND
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}Z"
    return value.isoformat() if isinstance(value, date) else None
