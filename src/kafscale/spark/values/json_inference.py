"""Infers the schema of JSON values.

Rules: integers are longs, other numbers doubles, both together doubles; objects are structs with
the fields of all of them, in the order of their first appearance; conflicting types, such as number
and string, are strings of JSON text. Strings that look like dates stay strings. A column of only
nulls has type null until `finalize`. Values that are not objects are skipped: they are invalid
records.
"""

from functools import reduce
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.json as pj

from kafscale.spark.values import json_columns
from kafscale.spark.values.base import list_of

_INT64_END: Final = 2**63
_PLAIN: Final = {type(None): pa.null(), bool: pa.bool_(), float: pa.float64(), str: pa.string()}
_DEPTH_MAX: Final = 32
"""Deeper values are text: deeper columns are useless in tables."""


def infer(values: pa.BinaryArray) -> pa.Schema:
    """Infer the schema of a sample."""
    return finalize(observe(values))


def observe(values: pa.BinaryArray) -> pa.Schema:
    """Return the observed schema of values, before `finalize`."""
    present = values.drop_null()
    if len(present) == 0:
        return pa.schema([])
    table = json_columns.read_objects(present, pj.ParseOptions())
    if table is not None:
        return pa.schema(_adapt(pa.struct(table.schema), 0).fields)
    observed: pa.DataType = pa.struct([])
    for value in present.to_pylist():
        try:
            row = msgspec.json.decode(value, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        observed = _unify(observed, _type_of(row, 0))
    return pa.schema(observed.fields)


def finalize(schema: pa.Schema) -> pa.Schema:
    """Return a schema for tables: columns of unknown type are text."""
    return pa.schema([pa.field(field.name, _finalize_type(field.type)) for field in schema])


def _unify(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    if {left, right} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        types = {field.name: field.type for field in left}
        for field in right:
            known = types.get(field.name)
            types[field.name] = field.type if known is None else _unify(known, field.type)
        return pa.struct(list(types.items()))
    if pa.types.is_list(left) and pa.types.is_list(right):
        return list_of(_unify(left.value_type, right.value_type))
    return pa.string()


def _type_of(value: Any, depth: int) -> pa.DataType:
    plain = _PLAIN.get(type(value))
    if plain is not None:
        return plain
    if isinstance(value, int):
        return pa.int64() if -_INT64_END <= value < _INT64_END else pa.float64()
    if depth == _DEPTH_MAX:
        return pa.string()
    if isinstance(value, dict):
        return pa.struct([(name, _type_of(item, depth + 1)) for name, item in value.items()])
    return list_of(reduce(_unify, (_type_of(item, depth + 1) for item in value), pa.null()))


def _adapt(type_: pa.DataType, depth: int) -> pa.DataType:
    """Adapt a type that Arrow has inferred to our rules."""
    if pa.types.is_timestamp(type_):
        return pa.string()
    if not pa.types.is_nested(type_):
        return type_
    if depth >= _DEPTH_MAX:
        return pa.string()
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, _adapt(field.type, depth + 1)) for field in type_])
    return list_of(_adapt(type_.value_type, depth + 1))


def _finalize_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_null(type_):
        return pa.string()
    if pa.types.is_list(type_):
        return list_of(_finalize_type(type_.value_type))
    if pa.types.is_struct(type_):
        fields = [(field.name, _finalize_type(field.type)) for field in type_]
        return pa.struct(fields) if fields else pa.string()
    return type_
