"""Rows for the table tests, written like a task writes them."""

import pickle
from collections.abc import Sequence

import pyarrow as pa

from kafscale.spark.tables.base import DataFile, Table, Version
from kafscale.spark.tables.writer import Encoding, FileWriter

HOUR_US = 3_600_000_000
START_US = 1_700_000_000_000_000
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.field("element", pa.struct([("key", pa.string())])))),
    ]
)


def rows(numbers: Sequence[int]) -> pa.RecordBatch:
    """Return a row for each number, that many hours after the start."""
    return pa.RecordBatch.from_pylist(
        [
            {
                "id": number,
                "name": None if number % 5 == 4 else f"name {number}",
                "timestamp": START_US + number * HOUR_US,
                "tags": None if number % 3 else [{"key": "x"}] * (number % 2),
            }
            for number in numbers
        ],
        schema=SCHEMA,
    )


def write(
    table: Table, version: Version, numbers: Sequence[int], encoding: Encoding | None = None
) -> list[DataFile]:
    """Write files with these rows; everything is pickled on the way."""
    files = pickle.loads(pickle.dumps(table.files(version)))  # noqa: S301 - our own.
    writer = FileWriter(files, encoding or Encoding())
    batch = rows(numbers)
    arrays = batch.columns
    batch = pa.RecordBatch.from_arrays(arrays, schema=files.schema)
    writer.add(batch, batch.column("timestamp"))
    return pickle.loads(pickle.dumps(list(writer.finish())))  # noqa: S301 - our own.
