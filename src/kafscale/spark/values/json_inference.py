"""The schema of JSON values that came without one.

The laws: whole numbers are longs, others doubles, both together doubles; objects are structs with
the fields of all of them, in the order of their first appearance; whatever contradicts itself, a
number here and a string there, is a string of JSON text. Texts that look like dates stay texts.
`observe` may be asked in parallel and `unify` joins its answers; a column of which only nulls were
seen is of type null until `settle`, which ends the observing. Values that are no objects are
skipped: they will be bad records.
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
"""Below it, everything is text: tables with deeper columns are of no use to anybody."""


def infer(values: pa.BinaryArray) -> pa.Schema:
    """The schema of a sample."""
    return settle(observe(values))


def observe(values: pa.BinaryArray) -> pa.Schema:
    """What is to be seen in the values."""
    present = values.drop_null()
    if len(present) == 0:
        return pa.schema([])
    table = json_columns.read_objects(present, pj.ParseOptions())
    if table is not None:
        return pa.schema(_cleaned(pa.struct(table.schema), 0).fields)
    seen: pa.DataType = pa.struct([])
    for value in present.to_pylist():
        try:
            row = msgspec.json.decode(value, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        seen = _unify(seen, _type_of(row, 0))
    return pa.schema(seen.fields)


def unify(left: pa.Schema, right: pa.Schema) -> pa.Schema:
    """What is to be seen in both."""
    return pa.schema(_unify(pa.struct(left), pa.struct(right)).fields)


def settle(schema: pa.Schema) -> pa.Schema:
    """A schema that a table can have: what shows nothing inside is text."""
    return pa.schema([pa.field(field.name, _settled(field.type)) for field in schema])


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


def _cleaned(type_: pa.DataType, depth: int) -> pa.DataType:
    """What Arrow has inferred, by our rules."""
    if pa.types.is_timestamp(type_):
        return pa.string()
    if not pa.types.is_nested(type_):
        return type_
    if depth >= _DEPTH_MAX:
        return pa.string()
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, _cleaned(field.type, depth + 1)) for field in type_])
    return list_of(_cleaned(type_.value_type, depth + 1))


def _settled(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_null(type_):
        return pa.string()
    if pa.types.is_list(type_):
        return list_of(_settled(type_.value_type))
    if pa.types.is_struct(type_):
        fields = [(field.name, _settled(field.type)) for field in type_]
        return pa.struct(fields) if fields else pa.string()
    return type_
