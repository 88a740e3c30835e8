"""Partitioning of tables by hour, day or month.

A time partition is a number: the hours, days or months since 1970-01-01 in UTC, as Iceberg's
partition transforms count them. Delta tables and Parquet directories store it as text. Pure.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import numpy as np
import pyarrow as pa


class TimeGranularity(StrEnum):
    """The length of a time partition."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"

    @property
    def column(self) -> str:
        """The partition column of formats that need one.

        It is also the name of directories. Readers skip directories that begin with an underscore.
        """
        return f"kafscale_{self}"

    @property
    def column_type(self) -> pa.DataType:
        return pa.date32() if self is TimeGranularity.DAY else pa.string()


_CODES: Final = {TimeGranularity.HOUR: "h", TimeGranularity.DAY: "D", TimeGranularity.MONTH: "M"}


def split_by_time(
    batch: pa.RecordBatch, times: pa.Array, granularity: TimeGranularity
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Split rows by the time partition of their timestamps; rows keep their order."""
    instants = times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_numpy()
    unit = f"datetime64[{_CODES[granularity]}]"
    partitions = instants.astype("datetime64[us]").astype(unit).astype(np.int64)
    if len(partitions) and partitions.min() == partitions.max():  # The usual case.
        yield int(partitions[0]), batch
        return
    for partition in np.unique(partitions):
        yield int(partition), batch.filter(pa.array(partitions == partition))


def format_partition(time_partition: int, granularity: TimeGranularity) -> str:
    """Return the text of a time partition.

    >>> format_partition(19675, TimeGranularity.DAY), format_partition(646, TimeGranularity.MONTH)
    ('2023-11-14', '2023-11')
    >>> format_partition(472205, TimeGranularity.HOUR)
    '2023-11-14-05'
    """
    return str(np.array(time_partition, f"datetime64[{_CODES[granularity]}]")).replace("T", "-")


def parse_partition(text: str, granularity: TimeGranularity) -> int:
    """Return the time partition of a text.

    >>> parse_partition("2023-11-14", TimeGranularity.DAY)
    19675
    >>> parse_partition("2023-11-14-05", TimeGranularity.HOUR)
    472205
    """
    iso = f"{text[:10]}T{text[11:]}" if granularity is TimeGranularity.HOUR else text
    return int(np.array(iso, f"datetime64[{_CODES[granularity]}]").astype(np.int64))


def partition_directory(time_partition: int | None, granularity: TimeGranularity | None) -> str:
    """Return the Hive-style directory of a time partition; empty for an unpartitioned table.

    >>> partition_directory(19675, TimeGranularity.DAY)
    'kafscale_day=2023-11-14'
    """
    if time_partition is None or granularity is None:
        return ""
    return f"{granularity.column}={format_partition(time_partition, granularity)}"
