"""Schema evolution: how the schema of a table follows the schemas of records.

The rules are Iceberg's: a nullable column may be added; a column may be widened from int to long,
from float to double, or to more digits of a decimal with the same scale; nothing else. `conform`
widens values that are narrower than their column. The rules also hold within structs, lists and
maps. Columns are never dropped: records without them have nulls. Pure.
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from kafscale.errors import InvalidRequestError
from kafscale.spark.values.base import list_of, nullable

_INTEGERS: Final = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_FLOATS: Final = (pa.float32(), pa.float64())
_TIME_UNITS: Final = ("s", "ms", "us", "ns")
_EQUIVALENT: Final = ({pa.string(), pa.large_string()}, {pa.binary(), pa.large_binary()})


def extend(table: pa.Schema, found: pa.Schema) -> pa.Schema:
    """Return the table schema extended for a found schema.

    A column keeps its type if the two conflict: values that do not fit are invalid records.
    """
    return pa.schema(_merge_fields(table, found))


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a batch to exactly the columns of a schema: cast, reordered, filled with nulls."""
    columns = []
    for field in schema:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            columns.append(pa.nulls(batch.num_rows, field.type))
        else:
            columns.append(_conform_column(field.name, batch.column(index), field.type))
    if not columns:
        return batch.select([])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


# --- merging --------------------------------------------------------------------------------------


def _merge_fields(table: Sequence[pa.Field], found: Sequence[pa.Field]) -> list[pa.Field]:
    new = {field.name: field for field in found}
    merged = []
    for field in table:
        other = new.pop(field.name, None)
        if other is None:
            merged.append(field)
        else:
            merged.append(field.with_type(_merge_type(field.type, other.type)))
    return merged + list(nullable(list(new.values())))


def _merge_type(table: pa.DataType, found: pa.DataType) -> pa.DataType:
    if table == found or pa.types.is_null(found):
        return table
    if pa.types.is_null(table):
        return found
    if pa.types.is_struct(table) and pa.types.is_struct(found):
        return pa.struct(_merge_fields(table.fields, found.fields))
    if _is_list(table) and _is_list(found):
        element = _merge_type(table.value_type, found.value_type)
        return table if element == table.value_type else list_of(element)
    if pa.types.is_map(table) and pa.types.is_map(found) and table.key_type == found.key_type:
        return pa.map_(table.key_type, _merge_type(table.item_type, found.item_type))
    wider = _wider(table, found)
    return table if wider is None else wider


def _wider(table: pa.DataType, values: pa.DataType) -> pa.DataType | None:
    """Return the wider of two types; None if there is none."""
    for family in (_INTEGERS, _FLOATS):
        if table in family and values in family:
            return max(table, values, key=family.index)
    if pa.types.is_decimal(table) and pa.types.is_decimal(values):
        is_same_scale = table.scale == values.scale
        return max(table, values, key=lambda type_: type_.precision) if is_same_scale else None
    return table if _accepts(table, values) else None


def _accepts(table: pa.DataType, values: pa.DataType) -> bool:
    """Whether a column can hold values of another type without being widened."""
    if table == pa.float64():
        return values in _INTEGERS
    if pa.types.is_timestamp(table) and pa.types.is_timestamp(values):
        is_finer = _TIME_UNITS.index(table.unit) >= _TIME_UNITS.index(values.unit)
        return is_finer and (table.tz is None) == (values.tz is None)
    return any(table in equivalent and values in equivalent for equivalent in _EQUIVALENT)


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


# --- conforming -----------------------------------------------------------------------------------


def _conform_column(  # noqa: PLR0911 - one return per type.
    path: str, column: pa.Array, type_: pa.DataType
) -> pa.Array:
    if column.type == type_:
        return column
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), type_)
    if pa.types.is_struct(type_) and pa.types.is_struct(column.type):
        return _conform_struct(path, column, type_)
    if pa.types.is_large_list(type_) and _is_list(column.type):
        return _conform_column(path, column, pa.list_(type_.value_field)).cast(type_)
    if pa.types.is_list(type_) and _is_list(column.type):
        column = column.cast(pa.list_(column.type.value_type))
        values = _conform_column(f"{path}.element", column.values, type_.value_type)
        return pa.ListArray.from_arrays(_offsets(column), values, type=type_)
    if pa.types.is_map(type_) and pa.types.is_map(column.type):
        keys = _conform_column(f"{path}.key", column.keys, type_.key_type)
        items = _conform_column(f"{path}.value", column.items, type_.item_type)
        return pa.MapArray.from_arrays(_offsets(column), keys, items, type=type_)
    try:
        return column.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidRequestError(
            f"column {path} is {type_} and cannot take values of {column.type}: {error}"
        ) from error


def _conform_struct(path: str, column: pa.StructArray, type_: pa.DataType) -> pa.Array:
    children = []
    for field in type_:
        index = column.type.get_field_index(field.name)
        if index < 0:
            children.append(pa.nulls(len(column), field.type))
        else:
            children.append(
                _conform_column(f"{path}.{field.name}", column.field(index), field.type)
            )
    mask = column.is_null() if column.null_count else None
    if not children:
        return column.cast(type_)
    return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)


def _offsets(column: pa.Array) -> pa.Array:
    """Return the offsets of the elements; null where the list is null."""
    if not column.null_count:
        return column.offsets
    is_null = pa.concat_arrays([column.is_null(), pa.array([False])])
    return pa.compute.if_else(is_null, pa.scalar(None, pa.int32()), column.offsets)
