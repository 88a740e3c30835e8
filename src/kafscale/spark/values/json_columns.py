"""The fast reader of JSON: many values at once with Arrow's reader, if all are valid.

Invariant: what is accepted here, `json_rows` accepts too, with the same result; in all other cases,
including doubtful ones, the result is None, and the values are read one by one. Arrow reads the
values as one stream of objects, so it must be certain that no object spans two values and no value
holds two objects. Proof: each value begins with `{` and ends with `}`, values are separated by
newlines, and there are as many objects as values. An object that is still open at the end of a
value cannot continue with `{` nor, within a string, with a newline; so every value begins at least
one object, and because the numbers are equal, exactly one.
"""

from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

BRACKETS_MAX: Final = 500
"""The brackets in one value: bounds its depth, because Arrow has no recursion limit."""

_TEXT_BYTES_MAX: Final = 1 << 30
_WHITESPACE: Final = " \t\r\n"
_NOT_JSON: Final = (b"NaN", b"Inf")
"""Numbers that Arrow accepts and JSON does not; in strings they only disable the fast reader."""

_DAYS: Final = (-719_162, 2_932_896)
"""The first and the last date of Python, as days since 1970."""

_DAY_US: Final = 86_400_000_000
_READ_TYPES: Final = {pa.date32(): pa.string(), pa.float32(): pa.float64()}


class ColumnReader:
    """Reads objects into the columns of a schema; other fields are ignored."""

    __slots__ = ("_read_schema", "_required", "_schema")

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = pa.schema([pa.field(field.name, field.type) for field in schema])
        self._required = [index for index, field in enumerate(schema) if not field.nullable]
        is_readable = len(schema) > 0 and all(_is_readable(field.type) for field in schema)
        self._read_schema = _read_schema(self._schema) if is_readable else None

    def read(self, values: pa.BinaryArray) -> pa.RecordBatch | None:
        """Read the columns of all values; None unless all are certainly valid."""
        present = values.drop_null() if values.null_count else values
        if self._read_schema is None or len(present) == 0:
            return None
        table = read_objects(
            present, pj.ParseOptions(self._read_schema, unexpected_field_behavior="ignore")
        )
        if table is None:
            return None
        try:
            batch = table.cast(self._schema).combine_chunks().to_batches()[0]
        except pa.ArrowInvalid:  # A text that is not a date.
            return None
        if any(batch.column(index).null_count for index in self._required):
            return None
        if not all(_is_in_range(column) for column in batch.columns):
            return None
        return batch if len(present) == len(values) else batch.take(_row_indexes(values))


def read_objects(values: pa.BinaryArray, options: pj.ParseOptions) -> pa.Table | None:
    """Read a row for each value, none of which is null; None unless each is one object."""
    text = _joined(values)
    if text is None:
        return None
    try:
        table = pj.read_json(
            pa.BufferReader(text),
            pj.ReadOptions(use_threads=False, block_size=text.size + 1),
            options,
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return table if table.num_rows == len(values) else None


def _joined(values: pa.BinaryArray) -> pa.Buffer | None:
    """Join the values with newlines; None if the conditions of the proof do not hold."""
    if values.nbytes > _TEXT_BYTES_MAX:
        return None
    try:
        text = values.cast(pa.string())
    except pa.ArrowInvalid:  # Not UTF-8.
        return None
    if not _are_objects(text):
        text = pc.ascii_trim(text, _WHITESPACE)
        if not _are_objects(text):
            return None
    # Every bracket must be closed, so shorter values cannot have too many.
    long = text.filter(pc.greater(pc.binary_length(text), 2 * BRACKETS_MAX))
    brackets = pc.add(pc.count_substring(long, "{"), pc.count_substring(long, "["))
    if len(long) and pc.max(brackets).as_py() > BRACKETS_MAX:
        return None
    whole = pa.ListArray.from_arrays(pa.array([0, len(text)], pa.int32()), text)
    joined = pc.binary_join(whole, "\n")[0].as_buffer()
    content = joined.to_pybytes()  # A copy: searching it is ten times as fast as with Arrow.
    return None if any(word in content for word in _NOT_JSON) else joined


def _are_objects(text: pa.StringArray) -> bool:
    return bool(
        pc.all(pc.starts_with(text, "{")).as_py() and pc.all(pc.ends_with(text, "}")).as_py()
    )


def _row_indexes(values: pa.BinaryArray) -> pa.Array:
    """Return for each value its row among those that are not null; null for the others."""
    is_present = values.is_valid()
    rows = pc.subtract(pc.cumulative_sum(is_present.cast(pa.int64())), 1)
    return pc.if_else(is_present, rows, pa.scalar(None, pa.int64()))


# --- types ----------------------------------------------------------------------------------------


def _is_readable(type_: pa.DataType) -> bool:
    """Whether Arrow reads the type from JSON like `json_rows`, directly or by another type."""
    if pa.types.is_struct(type_):
        return type_.num_fields > 0 and all(
            field.nullable and _is_readable(field.type) for field in type_
        )
    if pa.types.is_list(type_):
        return _is_readable(type_.value_type)
    return not (pa.types.is_binary(type_) or pa.types.is_map(type_))


def _read_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, _read_type(field.type)) for field in schema])


def _read_type(type_: pa.DataType) -> pa.DataType:
    """Return the type to read: Arrow reads dates as day numbers, and rounds floats only once."""
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, _read_type(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(pa.field(type_.value_field.name, _read_type(type_.value_type)))
    return _READ_TYPES.get(type_, type_)


def _is_in_range(column: pa.Array) -> bool:  # noqa: PLR0911 - one return per type.
    """Whether every number is finite and fits, and every date is in the range of Python."""
    type_ = column.type
    if pa.types.is_struct(type_):
        return all(_is_in_range(child) for child in column.flatten())
    if pa.types.is_list(type_):
        return _is_in_range(column.flatten())
    if pa.types.is_floating(type_):
        return pc.all(pc.is_finite(column)).as_py() is not False
    if pa.types.is_decimal(type_):  # Arrow does not count the zeros that it adds.
        end = Decimal(10) ** (type_.precision - type_.scale)
        return _is_between(column, -end, end)
    if pa.types.is_date32(type_):
        return _is_between(column.cast(pa.int32()), *_DAYS)
    if pa.types.is_timestamp(type_):
        first, last = _DAYS
        return _is_between(column.cast(pa.int64()), first * _DAY_US, last * _DAY_US)
    return True


def _is_between(column: pa.Array, before: Decimal | int, after: Decimal | int) -> bool:
    bounds = pc.min_max(column).as_py()
    return bounds["min"] is None or (bounds["min"] > before and bounds["max"] < after)
