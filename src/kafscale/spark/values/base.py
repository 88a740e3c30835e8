"""What every decoder of values gives, and how rows of Python objects become columns.

The laws: one bad record never costs the others, it is named with a reason instead; whether a record
is bad, and what it decodes to, depends on nothing but the record and the schema, not on the records
beside it, so that reading again gives the same table. A null value is a tombstone: a good row whose
columns are all null, hence every column is nullable. What becomes of bad records is the caller's.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec
import pyarrow as pa

from kafscale.errors import InvalidRecordError

Row: TypeAlias = dict[str, Any]

REASON_CHARACTERS_MAX: Final = 200
"""Reasons come from libraries too, and some of those repeat the whole value."""

_MISFITS: Final = (ValueError, TypeError, OverflowError, NotImplementedError)
"""How Arrow says that an object is not of a type; its own errors are kinds of these."""


class BadRow(NamedTuple):
    row: int
    """The index among the values that were given."""

    reason: str


class Decoded(msgspec.Struct, frozen=True):
    table: pa.RecordBatch
    """The columns of the good rows, in their order."""

    good: pa.BooleanArray
    """For each value that was given, whether it is in the table: a filter for columns beside it."""

    bad: list[BadRow]


class ValueDecoder(Protocol):
    @property
    def schema(self) -> pa.Schema | None:
        """What the next table will have at least; None while nothing is known."""

    def decode(self, values: pa.BinaryArray) -> Decoded: ...


class RawDecoder:
    """Values as they are, in one column."""

    __slots__ = ()

    schema: Final = pa.schema([("value", pa.binary())])

    def decode(self, values: pa.BinaryArray) -> Decoded:
        return all_good(pa.RecordBatch.from_arrays([values.cast(pa.binary())], schema=self.schema))


def all_good(table: pa.RecordBatch) -> Decoded:
    return Decoded(table, pa.repeat(pa.scalar(True), table.num_rows), [])


def decode_rows(
    values: pa.BinaryArray, read: Callable[[bytes], Row], schema: Callable[[], pa.Schema]
) -> Decoded:
    """Decode one by one: `read` raises for a bad value; the schema is asked for when all are read.

    A row may lack fields and have others than the schema: they become null and are left out.
    """
    rows: list[Row] = []
    places: list[int] = []
    bad: list[BadRow] = []
    for place, value in enumerate(values.to_pylist()):
        try:
            rows.append({} if value is None else read(value))
        except InvalidRecordError as error:
            bad.append(BadRow(place, shortened(str(error))))
        else:
            places.append(place)
    table, misfits = _assemble(rows, schema())
    bad += [BadRow(places[index], reason) for index, reason in misfits]
    good = [True] * len(values)
    for row in bad:
        good[row.row] = False
    return Decoded(table, pa.array(good, pa.bool_()), sorted(bad))


def _assemble(rows: list[Row], schema: pa.Schema) -> tuple[pa.RecordBatch, list[BadRow]]:
    """The rows as columns, and those left out because they do not fit."""
    type_ = pa.struct(schema)
    misfits: list[BadRow] = []
    try:
        column = pa.array(rows, type_)
    except _MISFITS:
        fitting = []
        for index, row in enumerate(rows):
            reason = _misfit(row, schema)
            if reason is None:
                fitting.append(row)
            else:
                misfits.append(BadRow(index, reason))
        column = pa.array(fitting, type_)
    return pa.RecordBatch.from_struct_array(column), misfits


def _misfit(row: Row, schema: pa.Schema) -> str | None:
    for field in schema:
        try:
            pa.array([row.get(field.name)], field.type)
        except _MISFITS as error:
            return shortened(f"{field.name}: {error}")
    return None


def shortened(reason: str) -> str:
    """A reason that fits a line."""
    line = " ".join(reason.split())
    if len(line) <= REASON_CHARACTERS_MAX:
        return line
    return line[: REASON_CHARACTERS_MAX - 1] + "…"


# --- types ----------------------------------------------------------------------------------------

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
"""The one kind of instant that Iceberg, Delta and Spark share."""


def list_of(element: pa.DataType) -> pa.DataType:
    """A list as Spark and Iceberg name its inside."""
    return pa.list_(pa.field("element", element))


def nullable(fields: Sequence[pa.Field] | pa.Schema) -> pa.Schema:
    """The same columns, all of which may be null, at every depth."""
    return pa.schema([pa.field(field.name, _nullable_type(field.type)) for field in fields])


def _nullable_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct(nullable(type_.fields))
    if pa.types.is_list(type_):
        return list_of(_nullable_type(type_.value_type))
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, _nullable_type(type_.item_type))
    return type_
