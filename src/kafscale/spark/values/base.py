"""The result of value decoders, and the conversion of Python rows to columns.

Invariants: an invalid record does not affect the others; it is reported with a reason. Whether a
record is valid, and its row, depend only on the record and the schema, so that decoding again gives
the same table. A null value is a tombstone: a valid row with null columns; hence every column is
nullable. The caller decides what to do with invalid records.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec
import pyarrow as pa

from kafscale.errors import InvalidRecordError

Row: TypeAlias = dict[str, Any]

REASON_CHARACTERS_MAX: Final = 200
"""Reasons may come from libraries, which may repeat the whole value."""

_CONVERSION_ERRORS: Final = (ValueError, TypeError, OverflowError, NotImplementedError)
"""The errors of Arrow for an object that does not have a type, and their base classes."""


class BadRow(NamedTuple):
    row: int
    """The index of the value."""

    reason: str


class Decoded(msgspec.Struct, frozen=True):
    table: pa.RecordBatch
    """The columns of the valid rows, in order."""

    good: pa.BooleanArray
    """For each value, whether it is in the table; a filter for other columns."""

    bad: list[BadRow]


class ValueDecoder(Protocol):
    @property
    def schema(self) -> pa.Schema | None:
        """The minimum schema of the next table; None if unknown."""

    def decode(self, values: pa.BinaryArray) -> Decoded: ...


class RawDecoder:
    """Returns the values unchanged, in one column."""

    __slots__ = ()

    schema: Final = pa.schema([("value", pa.binary())])

    def decode(self, values: pa.BinaryArray) -> Decoded:
        return all_good(pa.RecordBatch.from_arrays([values.cast(pa.binary())], schema=self.schema))


def all_good(table: pa.RecordBatch) -> Decoded:
    return Decoded(table, pa.repeat(pa.scalar(True), table.num_rows), [])


def decode_rows(
    values: pa.BinaryArray, read: Callable[[bytes], Row], schema: Callable[[], pa.Schema]
) -> Decoded:
    """Decode values one by one; `read` raises `InvalidRecordError` for an invalid value.

    `schema` is called after all values are read. Missing fields become null, and other fields are
    left out.
    """
    rows: list[Row] = []
    indexes: list[int] = []
    bad: list[BadRow] = []
    for index, value in enumerate(values.to_pylist()):
        try:
            rows.append({} if value is None else read(value))
        except InvalidRecordError as error:
            bad.append(BadRow(index, shorten(str(error))))
        else:
            indexes.append(index)
    table, misfits = _to_columns(rows, schema())
    bad += [BadRow(indexes[row], reason) for row, reason in misfits]
    good = [True] * len(values)
    for row in bad:
        good[row.row] = False
    return Decoded(table, pa.array(good, pa.bool_()), sorted(bad))


def _to_columns(rows: list[Row], schema: pa.Schema) -> tuple[pa.RecordBatch, list[BadRow]]:
    """Convert rows to columns; also return the rows that do not fit the schema."""
    type_ = pa.struct(schema)
    misfits: list[BadRow] = []
    try:
        column = pa.array(rows, type_)
    except _CONVERSION_ERRORS:
        fitting = []
        for index, row in enumerate(rows):
            reason = _conversion_error(row, schema)
            if reason is None:
                fitting.append(row)
            else:
                misfits.append(BadRow(index, reason))
        column = pa.array(fitting, type_)
    return pa.RecordBatch.from_struct_array(column), misfits


def _conversion_error(row: Row, schema: pa.Schema) -> str | None:
    for field in schema:
        try:
            pa.array([row.get(field.name)], field.type)
        except _CONVERSION_ERRORS as error:
            return shorten(f"{field.name}: {error}")
    return None


def shorten(reason: str) -> str:
    """Shorten a reason to one line."""
    line = " ".join(reason.split())
    if len(line) <= REASON_CHARACTERS_MAX:
        return line
    return line[: REASON_CHARACTERS_MAX - 1] + "…"


# --- types ----------------------------------------------------------------------------------------

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
"""The timestamp type that Iceberg, Delta and Spark share."""


def list_of(element: pa.DataType) -> pa.DataType:
    """Return a list type with the element name of Spark and Iceberg."""
    return pa.list_(pa.field("element", element))


def nullable(fields: Sequence[pa.Field] | pa.Schema) -> pa.Schema:
    """Return the same columns, nullable at every depth."""
    return pa.schema([pa.field(field.name, _nullable_type(field.type)) for field in fields])


def _nullable_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct(nullable(type_.fields))
    if pa.types.is_list(type_):
        return list_of(_nullable_type(type_.value_type))
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, _nullable_type(type_.item_type))
    return type_
