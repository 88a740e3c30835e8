"""Many JSON values at once, by Arrow's reader: the fast way, for values that are all good.

The law: whatever is accepted here, `json_rows` accepts too, and reads the same from it; in all
other cases, doubtful ones included, the answer is None, and the rows are read one by one. Arrow
would take the values for one stream of objects, so this must also prove that no object spans two
values and no value holds two objects. The proof: each value begins with `{` and ends with `}`,
newlines lie between values, and there are as many objects as values. For an object that is still
open at the end of a value can go on neither with `{` nor, within a string, with a newline; so
every value begins at least one object, and with the right number in all, exactly one.
"""

from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

BRACKETS_MAX: Final = 500
"""In one value: a bound on how deep it can be nested, since Arrow recurses without one."""

_TEXT_BYTES_MAX: Final = 1 << 30
_WHITESPACE: Final = " \t\r\n"
_NOT_JSON: Final = (b"NaN", b"Inf")
"""Numbers that Arrow knows and JSON does not; within strings, they merely cost the fast way."""

_DAYS: Final = (-719_162, 2_932_896)
"""The first and the last date that Python knows, as days since 1970; those between are plain."""

_DAY_US: Final = 86_400_000_000
_STAND_INS: Final = {pa.date32(): pa.string(), pa.float32(): pa.float64()}


class ColumnReader:
    """Reads objects into the columns of a schema, and ignores fields that are not in it."""

    __slots__ = ("_read_schema", "_required", "_schema")

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = pa.schema([pa.field(field.name, field.type) for field in schema])
        self._required = [index for index, field in enumerate(schema) if not field.nullable]
        is_readable = len(schema) > 0 and all(_is_readable(field.type) for field in schema)
        self._read_schema = _stand_ins(self._schema) if is_readable else None

    def read(self, values: pa.BinaryArray) -> pa.RecordBatch | None:
        """The columns of all values; None unless all are good beyond doubt."""
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
        except pa.ArrowInvalid:  # A text that is no date.
            return None
        if any(batch.column(index).null_count for index in self._required):
            return None
        if not all(_is_plain(column) for column in batch.columns):
            return None
        return batch if len(present) == len(values) else batch.take(_places(values))


def read_objects(values: pa.BinaryArray, options: pj.ParseOptions) -> pa.Table | None:
    """A row for each value, none of which is null; None unless each is one object."""
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
    """All values, with newlines between; None where the proof does not hold."""
    if values.nbytes > _TEXT_BYTES_MAX:
        return None
    try:
        text = values.cast(pa.string())
    except pa.ArrowInvalid:  # It is not UTF-8.
        return None
    if not _are_objects(text):
        text = pc.ascii_trim(text, _WHITESPACE)
        if not _are_objects(text):
            return None
    # Every bracket must be closed: what is shorter cannot have too many.
    long = text.filter(pc.greater(pc.binary_length(text), 2 * BRACKETS_MAX))
    brackets = pc.add(pc.count_substring(long, "{"), pc.count_substring(long, "["))
    if len(long) and pc.max(brackets).as_py() > BRACKETS_MAX:
        return None
    whole = pa.ListArray.from_arrays(pa.array([0, len(text)], pa.int32()), text)
    joined = pc.binary_join(whole, "\n")[0].as_buffer()
    content = joined.to_pybytes()  # A copy, for searching it is ten times as fast as by Arrow.
    return None if any(word in content for word in _NOT_JSON) else joined


def _are_objects(text: pa.StringArray) -> bool:
    return bool(
        pc.all(pc.starts_with(text, "{")).as_py() and pc.all(pc.ends_with(text, "}")).as_py()
    )


def _places(values: pa.BinaryArray) -> pa.Array:
    """For each value its row among those that are not null; null for the others."""
    is_present = values.is_valid()
    rows = pc.subtract(pc.cumulative_sum(is_present.cast(pa.int64())), 1)
    return pc.if_else(is_present, rows, pa.scalar(None, pa.int64()))


# --- types ----------------------------------------------------------------------------------------


def _is_readable(type_: pa.DataType) -> bool:
    """Whether Arrow reads the type from JSON as we do, or can be brought to."""
    if pa.types.is_struct(type_):
        return type_.num_fields > 0 and all(
            field.nullable and _is_readable(field.type) for field in type_
        )
    if pa.types.is_list(type_):
        return _is_readable(type_.value_type)
    return not (pa.types.is_binary(type_) or pa.types.is_map(type_))


def _stand_ins(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, _stand_in(field.type)) for field in schema])


def _stand_in(type_: pa.DataType) -> pa.DataType:
    """What to read a type as: Arrow takes dates for numbers of days, and rounds floats once."""
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, _stand_in(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(pa.field(type_.value_field.name, _stand_in(type_.value_type)))
    return _STAND_INS.get(type_, type_)


def _is_plain(column: pa.Array) -> bool:  # noqa: PLR0911 - a table of types is no maze.
    """Whether every number is finite and fits, and every date is one that Python knows."""
    type_ = column.type
    if pa.types.is_struct(type_):
        return all(_is_plain(child) for child in column.flatten())
    if pa.types.is_list(type_):
        return _is_plain(column.flatten())
    if pa.types.is_floating(type_):
        return pc.all(pc.is_finite(column)).as_py() is not False
    if pa.types.is_decimal(type_):  # Arrow forgets to count the zeros that it adds.
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
