"""What a record looks like in the lake. Pure: columns in, columns out, never row by row.

Left as they are, records have the columns of Spark's Kafka source. Decoded, they have those of
their values, and behind them five that tell where they come from:

    _kafscale_topic  _kafscale_partition  _kafscale_offset  _kafscale_timestamp  _kafscale_key

Records whose values cannot be decoded become rows of another table, dead letters, as they are and
with the reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from kafscale.errors import InvalidRequestError
from kafscale.spark.jobs.lake.keys import Identity
from kafscale.spark.source.columns import ALL_WITH_HEADERS, Columns
from kafscale.spark.tables.time_partitions import TimeGranularity
from kafscale.spark.tables.writer import Encoding
from kafscale.spark.values import BadRow, ValueDecoder, ValueSpec, create_decoder
from kafscale.spark.values.json_values import JsonDecoder

PREFIX: Final = "_kafscale_"

RAW: Final = ALL_WITH_HEADERS
"""What is read of records that are left as they are."""

DECODABLE: Final = Columns(("key", "value", "topic", "partition", "offset", "timestamp"))
"""What is read of records that are decoded."""

_ORIGIN: Final = ("topic", "partition", "offset", "timestamp", "key")

DEAD_LETTERS: Final = pa.schema(
    [
        *(DECODABLE.schema.field(name) for name in (*_ORIGIN, "value")),
        pa.field("reason", pa.string()),
    ]
)

_UNITS: Final = frozenset(unit.column for unit in TimeGranularity)

SAMPLES_MAX: Final = 64


def time_column(*, is_decoded: bool) -> str:
    """The column with the time of a record."""
    return f"{PREFIX}timestamp" if is_decoded else "timestamp"


def identity(keys: Sequence[str], *, is_decoded: bool) -> Identity:
    """What rows are known by: these columns, or the record's key if there are none."""
    prefix = PREFIX if is_decoded else ""
    record_key = f"{prefix}key"
    place = (f"{prefix}partition", f"{prefix}offset")
    return Identity(tuple(keys) or (record_key,), record_key, place, f"{prefix}timestamp")


def decoded_schema(values: pa.Schema) -> pa.Schema:
    """The columns of a table for decoded values."""
    for name, reason in misnamed(values.names).items():
        raise InvalidRequestError(f"values cannot have a column {name!r}: {reason}")
    origin = [DECODABLE.schema.field(name) for name in _ORIGIN]
    return pa.schema([*values, *(field.with_name(PREFIX + field.name) for field in origin)])


def misnamed(names: Sequence[str], table: Sequence[str] = ()) -> dict[str, str]:
    """Those of the names of fields that cannot be names of columns, and why.

    >>> misnamed(["id", "ID", "_kafscale_key"])
    {'ID': 'differs from id by case only', '_kafscale_key': 'is one of our own names'}
    """
    taken = {name.lower(): name for name in table}
    found: dict[str, str] = {}
    for name in names:
        known = taken.setdefault(name.lower(), name)
        if not name:
            found[name] = "is empty"
        elif name.lower().startswith(PREFIX) or name.lower() in _UNITS:
            found[name] = "is one of our own names"
        elif known != name:
            found[name] = f"differs from {known} by case only"
    return found


def well_named(schema: pa.Schema) -> pa.Schema:
    """A table's columns without those of values that cannot be columns."""
    wrong = misnamed(value_columns(schema).names)
    return pa.schema([field for field in schema if field.name not in wrong])


def value_columns(table: pa.Schema) -> pa.Schema:
    """The columns of such a table that come from values."""
    return pa.schema([field for field in table if not field.name.startswith(PREFIX)])


def laid_out(encoding: Encoding, *, is_decoded: bool) -> Encoding:
    """How files are best laid out: keys and values vary, offsets and times count up."""
    prefix = PREFIX if is_decoded else ""
    plain = (f"{prefix}key",) if is_decoded else ("key", "value")
    return replace(encoding, plain=plain, counting=(f"{prefix}offset", f"{prefix}timestamp"))


def decoder_for(values: ValueSpec, table: pa.Schema) -> ValueDecoder:
    """The decoder of values for a table; if it learns as it goes, the table is what it knows."""
    if values.format == "json" and (values.grows or not values.schema):
        known = value_columns(table)
        return JsonDecoder(known, grows=True, is_framed=values.registry is not None)
    return create_decoder(values)


def good_rows(records: pa.RecordBatch, values: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of records and their decoded values."""
    columns = [*values.columns, *(records.column(name) for name in _ORIGIN)]
    return pa.RecordBatch.from_arrays(columns, schema=decoded_schema(values.schema))


def bad_fields(values: pa.RecordBatch, table: pa.Schema) -> tuple[pa.RecordBatch, list[BadRow]]:
    """The values without fields that cannot be columns, and the rows that have such fields."""
    wrong = misnamed(values.schema.names, value_columns(table).names)
    if not wrong:
        return values, []
    reasons: dict[int, str] = {}
    for name, reason in wrong.items():
        (rows,) = values.column(name).is_valid().to_numpy(zero_copy_only=False).nonzero()
        reasons |= {int(row): f"the name of field {name!r} {reason}" for row in rows}
    kept = values.select([name for name in values.schema.names if name not in wrong])
    return kept, [BadRow(row, reason) for row, reason in sorted(reasons.items())]


def dead_letters(
    records: pa.RecordBatch, bad: Sequence[BadRow], known_to: Mapping[int, int]
) -> pa.RecordBatch:
    """The rows of those that could not, but for offsets that are among the dead letters already.

    `known_to` is the first offset of each partition that is not.
    """
    rows = records.take(pa.array([row.row for row in bad], pa.int64()))
    reasons = pa.array([row.reason for row in bad], pa.string())
    columns = [*(rows.column(name) for name in DEAD_LETTERS.names[:-1]), reasons]
    letters = pa.RecordBatch.from_arrays(columns, schema=DEAD_LETTERS)
    due = [
        offset >= known_to.get(partition, 0)
        for partition, offset in zip(
            letters.column("partition").to_pylist(),
            letters.column("offset").to_pylist(),
            strict=True,
        )
    ]
    return letters if all(due) else letters.filter(pa.array(due, pa.bool_()))


def sampled_times(timestamps: pa.Array) -> list[int]:
    """The times of some records, in milliseconds, evenly spread."""
    step = -(-len(timestamps) // SAMPLES_MAX) or 1
    instants = timestamps.cast(pa.int64()).to_numpy()[::step]
    return [int(instant) for instant in instants // 1000]


def percentile(samples: Sequence[tuple[int, float]], share: float) -> int:
    """The value that a share of the weight does not exceed.

    >>> percentile([(10, 1.0), (20, 2.0), (30, 1.0)], 0.5)
    20
    """
    ordered = sorted(samples)
    weights = np.cumsum([weight for _, weight in ordered])
    place = int(np.searchsorted(weights, share * weights[-1]))
    return ordered[min(place, len(ordered) - 1)][0]
