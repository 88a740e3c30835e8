"""Converts records to rows of a table. Pure: works on columns, never row by row.

Undecoded records have the columns of Spark's Kafka source. Decoded records have the columns of
their values, followed by five columns with their origin:

    _kafscale_topic  _kafscale_partition  _kafscale_offset  _kafscale_timestamp  _kafscale_key

Records whose values cannot be decoded become rows of another table, the dead letters, undecoded and
with the reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from kafscale.errors import InvalidRequestError
from kafscale.spark.codec.columns import ALL_WITH_HEADERS, Columns
from kafscale.spark.jobs.lake.upsert import RowIdentity
from kafscale.spark.tables.time_partitions import TimeGranularity
from kafscale.spark.tables.writer import Encoding
from kafscale.spark.values import BadRow, ValueDecoder, ValueSpec, create_decoder
from kafscale.spark.values.json_decoder import JsonDecoder

PREFIX: Final = "_kafscale_"

RAW: Final = ALL_WITH_HEADERS
"""The columns to read if values are not decoded."""

DECODABLE: Final = Columns(("key", "value", "topic", "partition", "offset", "timestamp"))
"""The columns to read if values are decoded."""

_ORIGIN: Final = ("topic", "partition", "offset", "timestamp", "key")

DEAD_LETTERS: Final = pa.schema(
    [
        *(DECODABLE.schema.field(name) for name in (*_ORIGIN, "value")),
        pa.field("reason", pa.string()),
    ]
)

_PARTITION_COLUMNS: Final = frozenset(each.column for each in TimeGranularity)

SAMPLES_MAX: Final = 64


def time_column(*, is_decoded: bool) -> str:
    """Return the column with the timestamp of a record."""
    return f"{PREFIX}timestamp" if is_decoded else "timestamp"


def row_identity(keys: Sequence[str], *, is_decoded: bool) -> RowIdentity:
    """Return the identity of rows by key columns, or by the record key if there are none."""
    prefix = PREFIX if is_decoded else ""
    record_key = f"{prefix}key"
    position = (f"{prefix}partition", f"{prefix}offset")
    return RowIdentity(tuple(keys) or (record_key,), record_key, position, f"{prefix}timestamp")


def decoded_schema(values: pa.Schema) -> pa.Schema:
    """Return the schema of a table of decoded values."""
    for name, reason in invalid_names(values.names).items():
        raise InvalidRequestError(f"values cannot have a column {name!r}: {reason}")
    origin = [DECODABLE.schema.field(name) for name in _ORIGIN]
    return pa.schema([*values, *(field.with_name(PREFIX + field.name) for field in origin)])


def invalid_names(names: Sequence[str], table: Sequence[str] = ()) -> dict[str, str]:
    """Return the field names that cannot be column names, with the reason.

    >>> invalid_names(["id", "ID", "_kafscale_key"])
    {'ID': 'differs from id only in case', '_kafscale_key': 'is reserved'}
    """
    used = {name.lower(): name for name in table}
    invalid: dict[str, str] = {}
    for name in names:
        known = used.setdefault(name.lower(), name)
        if not name:
            invalid[name] = "is empty"
        elif name.lower().startswith(PREFIX) or name.lower() in _PARTITION_COLUMNS:
            invalid[name] = "is reserved"
        elif known != name:
            invalid[name] = f"differs from {known} only in case"
    return invalid


def without_invalid_names(schema: pa.Schema) -> pa.Schema:
    """Return a table schema without value columns that have invalid names."""
    wrong = invalid_names(value_columns(schema).names)
    return pa.schema([field for field in schema if field.name not in wrong])


def value_columns(table: pa.Schema) -> pa.Schema:
    """Return the columns of a table of decoded values that come from values."""
    return pa.schema([field for field in table if not field.name.startswith(PREFIX)])


def with_column_encodings(encoding: Encoding, *, is_decoded: bool) -> Encoding:
    """Choose column encodings: keys and values vary, offsets and timestamps ascend."""
    prefix = PREFIX if is_decoded else ""
    plain = (f"{prefix}key",) if is_decoded else ("key", "value")
    return replace(encoding, plain=plain, ascending=(f"{prefix}offset", f"{prefix}timestamp"))


def decoder_for(values: ValueSpec, table: pa.Schema) -> ValueDecoder:
    """Return the decoder of values; one that infers columns starts with those of the table."""
    if values.format == "json" and (values.grows or not values.schema):
        known = value_columns(table)
        return JsonDecoder(known, grows=True, is_framed=values.registry is not None)
    return create_decoder(values)


def build_rows(records: pa.RecordBatch, values: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of records with decoded values."""
    columns = [*values.columns, *(records.column(name) for name in _ORIGIN)]
    return pa.RecordBatch.from_arrays(columns, schema=decoded_schema(values.schema))


def drop_invalid_fields(
    values: pa.RecordBatch, table: pa.Schema
) -> tuple[pa.RecordBatch, list[BadRow]]:
    """Return values without fields that cannot be columns, and the rows that have such fields."""
    wrong = invalid_names(values.schema.names, value_columns(table).names)
    if not wrong:
        return values, []
    reasons: dict[int, str] = {}
    for name, reason in wrong.items():
        (rows,) = values.column(name).is_valid().to_numpy(zero_copy_only=False).nonzero()
        reasons |= {int(row): f"the name of field {name!r} {reason}" for row in rows}
    kept = values.select([name for name in values.schema.names if name not in wrong])
    return kept, [BadRow(row, reason) for row, reason in sorted(reasons.items())]


def dead_letters(
    records: pa.RecordBatch, bad: Sequence[BadRow], next_offsets: Mapping[int, int]
) -> pa.RecordBatch:
    """Return the bad records as dead letters, without those that are dead letters already.

    `next_offsets` has for each partition the offset after those that were committed.
    """
    rows = records.take(pa.array([row.row for row in bad], pa.int64()))
    reasons = pa.array([row.reason for row in bad], pa.string())
    columns = [*(rows.column(name) for name in DEAD_LETTERS.names[:-1]), reasons]
    letters = pa.RecordBatch.from_arrays(columns, schema=DEAD_LETTERS)
    due = [
        offset >= next_offsets.get(partition, 0)
        for partition, offset in zip(
            letters.column("partition").to_pylist(),
            letters.column("offset").to_pylist(),
            strict=True,
        )
    ]
    return letters if all(due) else letters.filter(pa.array(due, pa.bool_()))


def sample_timestamps(timestamps: pa.Array) -> list[int]:
    """Return an evenly spaced sample of timestamps in milliseconds."""
    step = -(-len(timestamps) // SAMPLES_MAX) or 1
    sample = timestamps.cast(pa.int64()).to_numpy()[::step]
    return [int(timestamp_us) for timestamp_us in sample // 1000]


def percentile(samples: Sequence[tuple[int, float]], share: float) -> int:
    """Return the weighted percentile of samples with weights.

    >>> percentile([(10, 1.0), (20, 2.0), (30, 1.0)], 0.5)
    20
    """
    ordered = sorted(samples)
    weights = np.cumsum([weight for _, weight in ordered])
    index = int(np.searchsorted(weights, share * weights[-1]))
    return ordered[min(index, len(ordered) - 1)][0]
