"""Decodes Protobuf values: of a given message, or framed with the ID of a registered schema.

Protobuf needs no writer schema: if a message is given, framed values are read with it, and the
registry is not asked. Otherwise each value is read as the message that it names, and the columns
grow with every message that is found, as `evolution` allows. Unknown fields are ignored.

Messages are mapped to Arrow types; every value of the Protobuf type fits the Arrow type:

    message, map, repeated   struct, map, list
    enum                     text: the name, or the number if it has none
    uint32, uint64           long, decimal(20,0), because tables have no unsigned numbers
    Timestamp                timestamp in microseconds of UTC
    wrappers                 the wrapped type
    Duration, FieldMask      text as in Protobuf's JSON, such as 1.5s
    Struct, Value, …         JSON text; also messages without fields, and recursive ones

A field with presence (`optional`, members of a oneof, messages) is null if it is not set; other
fields have their default, as usual in Protobuf.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from kafscale.errors import ConfigError, InvalidRecordError
from kafscale.serde.protobuf.descriptors import ProtobufFiles
from kafscale.serde.registry import wire_format
from kafscale.serde.registry.client import RegisteredSchema, Registry, SchemaCache
from kafscale.serde.registry.references import protobuf_set
from kafscale.spark.values import evolution
from kafscale.spark.values.base import TIMESTAMP, Decoded, Row, decode_rows, list_of

# --- decoders -------------------------------------------------------------------------------------

_DECODE_ERRORS: Final = (DecodeError, UnicodeDecodeError)


class MessageReader:
    """Reads one type of message; `arrow` is the schema of its rows."""

    __slots__ = ("_class", "_row", "arrow")

    def __init__(self, message: Descriptor) -> None:
        self._class = message_factory.GetMessageClass(message)
        self.arrow, self._row = message_columns(message)
        if not len(self.arrow):
            raise ConfigError(f"the message {message.full_name} has no fields")

    def read(self, payload: bytes) -> Row:
        try:
            return self._row(self._class.FromString(payload))
        except _DECODE_ERRORS as error:
            raise InvalidRecordError(f"{error}") from error


class ProtobufDecoder:
    """Decodes all values, framed or not, as one type of message."""

    __slots__ = ("_is_framed", "_reader", "schema")

    def __init__(self, message: Descriptor, *, is_framed: bool = False) -> None:
        self._reader = MessageReader(message)
        self._is_framed = is_framed
        self.schema = self._reader.arrow

    def decode(self, values: pa.BinaryArray) -> Decoded:
        return decode_rows(values, self._read, lambda: self.schema)

    def _read(self, value: bytes) -> Row:
        if self._is_framed:
            _, rest = wire_format.split(value)
            _, value = wire_format.split_indexes(rest)
        return self._reader.read(value)


class ProtobufRegistryDecoder:
    """Decodes each value as the message that it names."""

    __slots__ = ("_files", "_readers", "_schema")

    def __init__(self, registry: Registry) -> None:
        self._files = SchemaCache(registry, from_registry)
        self._readers: dict[tuple[int, tuple[int, ...]], MessageReader] = {}
        self._schema: pa.Schema | None = None

    @property
    def schema(self) -> pa.Schema | None:
        return self._schema

    def decode(self, values: pa.BinaryArray) -> Decoded:
        self._files.begin_batch()
        return decode_rows(values, self._read, lambda: self._schema or pa.schema([]))

    def _read(self, value: bytes) -> Row:
        schema_id, rest = wire_format.split(value)
        indexes, payload = wire_format.split_indexes(rest)
        return self._reader(schema_id, indexes).read(payload)

    def _reader(self, schema_id: int, indexes: tuple[int, ...]) -> MessageReader:
        known = self._readers.get((schema_id, indexes))
        if known is not None:
            return known
        message = self._files.get(schema_id).message_at(indexes)
        try:
            reader = MessageReader(message)
        except ConfigError as error:
            raise InvalidRecordError(str(error)) from error
        self._schema = evolution.extend(self._schema or pa.schema([]), reader.arrow)
        self._readers[schema_id, indexes] = reader
        return reader


def from_registry(schema: RegisteredSchema) -> ProtobufFiles:
    """Return the files of a registered schema with its imports."""
    return ProtobufFiles.from_descriptor_set(protobuf_set(schema))


# --- types ----------------------------------------------------------------------------------------

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
_TEXT_TYPES: Final = frozenset(f"{_PACKAGE}{name}" for name in ("Duration", "FieldMask"))
_JSON_TYPES: Final = frozenset(f"{_PACKAGE}{name}" for name in ("Struct", "Value", "ListValue"))
_SECONDS: Final = range(-62_135_596_800, 253_402_300_800)
"""The range of Protobuf timestamps: years 1 to 9999."""


class ArrowType(NamedTuple):
    type: pa.DataType
    convert: Convert | None
    """Converts a value of Protobuf; None if no conversion is needed."""


class _Field(NamedTuple):
    name: str
    type: pa.DataType
    read: Callable[[Message], Any]


def message_columns(descriptor: Descriptor) -> tuple[pa.Schema, Callable[[Message], Row]]:
    """Return the columns of a message, and a function that converts it to a row."""
    fields = _fields(descriptor, ())
    return pa.schema([(field.name, field.type) for field in fields]), _row_reader(fields)


def _fields(descriptor: Descriptor, within: tuple[str, ...]) -> list[_Field]:
    inside = (*within, descriptor.full_name)
    return [_field(field, inside) for field in descriptor.fields]


def _row_reader(fields: list[_Field]) -> Callable[[Message], Row]:
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
    """Return the type of one value of a field."""
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
    if name in _TEXT_TYPES:
        return ArrowType(pa.string(), _json_value)
    if name in _JSON_TYPES or name in within or not message.fields:
        return ArrowType(pa.string(), _json_text)
    fields = _fields(message, within)
    type_ = pa.struct([(field.name, field.type) for field in fields])
    return ArrowType(type_, _row_reader(fields))


def _microseconds(timestamp: Any) -> int:
    seconds: int = timestamp.seconds
    nanos: int = timestamp.nanos
    if seconds not in _SECONDS or not 0 <= nanos < 1_000_000_000:
        raise InvalidRecordError(f"timestamp out of range: {seconds} seconds and {nanos} nanos")
    return seconds * 1_000_000 + nanos // 1000


def _json_value(message: Message) -> Any:
    try:
        return json_format.MessageToDict(message, preserving_proto_field_name=True)
    except (ValueError, TypeError, json_format.Error) as error:
        raise InvalidRecordError(f"the message cannot be converted to JSON: {error}") from error


def _json_text(message: Message) -> str:
    return msgspec.json.encode(_json_value(message)).decode()
