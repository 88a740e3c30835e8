"""The files of a Delta table: Parquet without the partition column."""

from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from kafscale.aio.clock import clock
from kafscale.spark.tables.base import DataFile
from kafscale.spark.tables.data_files import NamedColumnFiles
from kafscale.spark.tables.time_partitions import partition_directory

TEXT_LENGTH_MAX: Final = 32
"""Longer texts have no bounds: truncated ones would have to be rounded."""

_MILLISECOND: Final = timedelta(milliseconds=1)


class DeltaFiles(NamedColumnFiles):
    """Writes and reads the files of one version of a table."""

    def write(
        self, name: str, data: pa.Buffer, metadata: pq.FileMetaData, time_partition: int | None
    ) -> DataFile:
        directory = partition_directory(time_partition, self.granularity)
        path = self.filesystem.join(directory, name)
        self.filesystem.write(path, data)
        details = {"statistics": statistics(metadata), "modified_ms": clock()}
        return DataFile(path, metadata.num_rows, data.size, time_partition, details)


def statistics(metadata: pq.FileMetaData) -> str:
    """Return Delta's column statistics as JSON: null counts, minimum and maximum."""
    nulls: dict[str, int] = {}
    minimum: dict[str, Any] = {}
    maximum: dict[str, Any] = {}
    for column in range(metadata.num_columns):
        if "." in metadata.schema.column(column).path:
            continue
        name = metadata.schema.column(column).path
        groups = [
            metadata.row_group(group).column(column).statistics
            for group in range(metadata.num_row_groups)
        ]
        if not groups or any(each is None or not each.has_null_count for each in groups):
            continue
        nulls[name] = sum(each.null_count for each in groups)
        bounded = [each for each in groups if each.has_min_max]
        # A row group of nulls has no bounds, and needs none.
        if not bounded or any(not each.has_min_max and each.num_values for each in groups):
            continue
        low = _bound(min(each.min for each in bounded), is_upper=False)
        high = _bound(max(each.max for each in bounded), is_upper=True)
        if low is not None and high is not None:
            minimum[name], maximum[name] = low, high
    document = {
        "numRecords": metadata.num_rows,
        "minValues": minimum,
        "maxValues": maximum,
        "nullCount": nulls,
    }
    return msgspec.json.encode(document).decode()


def _bound(value: Any, *, is_upper: bool) -> Any:
    """Return a bound in Delta's JSON; None if the type has no bounds."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        return value if len(value) <= TEXT_LENGTH_MAX else None
    if isinstance(value, datetime):
        if is_upper and value.microsecond % 1000:  # Delta stores milliseconds.
            value += _MILLISECOND
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}Z"
    return value.isoformat() if isinstance(value, date) else None
