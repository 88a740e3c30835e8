"""What a Protobuf message is in Arrow, and how its fields are read into a row.

    message, map, repeated   struct, map, list
    enum                     text: the name, or the number if it has none
    uint32, uint64           long, decimal(20,0), for tables know no unsigned numbers
    Timestamp                timestamp in microseconds of UTC
    wrappers                 what they wrap
    Duration, FieldMask      text as Protobuf's JSON has it, such as 1.5s
    Struct, Value, …         JSON text; also a message without fields, or one within itself

A field that knows whether it was set (`optional`, members of a oneof, messages) is null if it was
not; others have their default, as everywhere in Protobuf. The law: every value of the Protobuf
type fits the Arrow type. Pure.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from kafscale.errors import InvalidRecordError
from kafscale.spark.values.base import TIMESTAMP, Row, list_of

Convert: TypeAlias = Callable[[Any], Any]

_SCALARS: Final = {
    FieldDescriptor.CPPTYPE_INT32: pa.int32(),
    FieldDescriptor.CPPTYPE_INT64: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT32: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT64: pa.decimal128(20, 0),
    FieldDescriptor.CPPTYPE_DOUBLE: pa.float64(),
    FieldDescriptor.CPPTYPE_FLOAT: pa.float32(),
    FieldDescriptor.CPPTYPE_BOOL: pa.bool_(),
}
_PACKAGE: Final = "google.protobuf."
_WRAPPERS: Final = frozenset(
    f"{_PACKAGE}{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_TEXTS: Final = frozenset(f"{_PACKAGE}{name}" for name in ("Duration", "FieldMask"))
_DOCUMENTS: Final = frozenset(f"{_PACKAGE}{name}" for name in ("Struct", "Value", "ListValue"))
_SECONDS: Final = range(-62_135_596_800, 253_402_300_800)
"""From the year 1 to the year 9999, as Protobuf limits its timestamps."""


class ArrowType(NamedTuple):
    type: pa.DataType
    convert: Convert | None
    """From what Protobuf gives; None if that needs no change."""


class _Field(NamedTuple):
    name: str
    type: pa.DataType
    read: Callable[[Message], Any]


def schema_of(descriptor: Descriptor) -> tuple[pa.Schema, Callable[[Message], Row]]:
    """The columns of a message, and how it becomes a row; none for a message without fields."""
    fields = _fields(descriptor, ())
    return pa.schema([(field.name, field.type) for field in fields]), _row_of(fields)


def _fields(descriptor: Descriptor, within: tuple[str, ...]) -> list[_Field]:
    inside = (*within, descriptor.full_name)
    return [_field(field, inside) for field in descriptor.fields]


def _row_of(fields: list[_Field]) -> Callable[[Message], Row]:
    pairs = [(field.name, field.read) for field in fields]
    return lambda message: {name: read(message) for name, read in pairs}


def _field(field: FieldDescriptor, within: tuple[str, ...]) -> _Field:
    name = field.name
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return _map_field(field, within)
    type_, convert = _arrow(field, within)
    if field.is_repeated:
        if convert is None:
            return _Field(name, list_of(type_), lambda message: list(getattr(message, name)))
        return _Field(
            name, list_of(type_), lambda message: [convert(v) for v in getattr(message, name)]
        )
    return _Field(name, type_, _singular(field, convert))


def _singular(field: FieldDescriptor, convert: Convert | None) -> Callable[[Message], Any]:
    name = field.name
    if not field.has_presence:
        if convert is None:
            return lambda message: getattr(message, name)
        return lambda message: convert(getattr(message, name))
    if convert is None:
        return lambda message: getattr(message, name) if message.HasField(name) else None
    return lambda message: convert(getattr(message, name)) if message.HasField(name) else None


def _map_field(field: FieldDescriptor, within: tuple[str, ...]) -> _Field:
    name = field.name
    entry = field.message_type
    assert entry is not None
    key_type, _ = _arrow(entry.fields_by_name["key"], within)
    item_type, convert = _arrow(entry.fields_by_name["value"], within)
    type_ = pa.map_(key_type, item_type)
    if convert is None:
        return _Field(name, type_, lambda message: dict(getattr(message, name)))
    return _Field(
        name, type_, lambda message: {k: convert(v) for k, v in getattr(message, name).items()}
    )


def _arrow(field: FieldDescriptor, within: tuple[str, ...]) -> ArrowType:
    """The type of one value of a field."""
    if field.message_type is not None:
        return _arrow_message(field.message_type, within)
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return ArrowType(pa.string(), lambda number: names.get(number) or str(number))
    if field.type == FieldDescriptor.TYPE_STRING:
        return ArrowType(pa.string(), None)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return ArrowType(pa.binary(), None)
    return ArrowType(_SCALARS[field.cpp_type], None)


def _arrow_message(message: Descriptor, within: tuple[str, ...]) -> ArrowType:
    name = message.full_name
    if name == f"{_PACKAGE}Timestamp":
        return ArrowType(TIMESTAMP, _microseconds)
    if name in _WRAPPERS:
        wrapped = _arrow(message.fields_by_name["value"], within)
        return ArrowType(wrapped.type, lambda wrapper: wrapper.value)
    if name in _TEXTS:
        return ArrowType(pa.string(), _document)
    if name in _DOCUMENTS or name in within or not message.fields:
        return ArrowType(pa.string(), _json_text)
    fields = _fields(message, within)
    type_ = pa.struct([(field.name, field.type) for field in fields])
    return ArrowType(type_, _row_of(fields))


def _microseconds(timestamp: Any) -> int:
    seconds: int = timestamp.seconds
    nanos: int = timestamp.nanos
    if seconds not in _SECONDS or not 0 <= nanos < 1_000_000_000:
        raise InvalidRecordError(f"there is no timestamp of {seconds} seconds and {nanos} nanos")
    return seconds * 1_000_000 + nanos // 1000


def _document(message: Message) -> Any:
    try:
        return json_format.MessageToDict(message, preserving_proto_field_name=True)
    except (ValueError, TypeError, json_format.Error) as error:
        raise InvalidRecordError(f"it has no form in JSON: {error}") from error


def _json_text(message: Message) -> str:
    return msgspec.json.encode(_document(message)).decode()
