"""Values in Protobuf: of a given message, or framed with the id of a schema in a registry.

Protobuf needs no writer's schema: where a message is given, framed values are read with it, and the
registry is not asked. Where none is, each value is read as the message that it names, and the
columns grow with every message that is met, as `evolution` allows. Fields that the message does not
have are ignored.
"""

from typing import Final

import pyarrow as pa
from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError

from kafscale.errors import ConfigError, InvalidRecordError
from kafscale.serde.protobuf.descriptors import ProtobufFiles
from kafscale.serde.registry import wire_format
from kafscale.serde.registry.cache import SchemaCache
from kafscale.serde.registry.client import RegisteredSchema, Registry
from kafscale.serde.registry.references import protobuf_set
from kafscale.spark.values import evolution
from kafscale.spark.values.base import Decoded, Row, decode_rows
from kafscale.spark.values.protobuf_types import schema_of

_NOT_THE_MESSAGE: Final = (DecodeError, UnicodeDecodeError)


class MessageReader:
    """Reads one message; the Arrow schema is that of its rows."""

    __slots__ = ("_class", "_row", "arrow")

    def __init__(self, message: Descriptor) -> None:
        self._class = message_factory.GetMessageClass(message)
        self.arrow, self._row = schema_of(message)
        if not len(self.arrow):
            raise ConfigError(f"the message {message.full_name} has no fields")

    def read(self, payload: bytes) -> Row:
        try:
            return self._row(self._class.FromString(payload))
        except _NOT_THE_MESSAGE as error:
            raise InvalidRecordError(f"{error}") from error


class ProtobufDecoder:
    """Reads all values as one message, whether or not they are framed."""

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
    """Reads each value as the message that it names."""

    __slots__ = ("_files", "_readers", "_schema")

    def __init__(self, registry: Registry) -> None:
        self._files = SchemaCache(registry, registered)
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


def registered(schema: RegisteredSchema) -> ProtobufFiles:
    """A registry's schema, with those that it imports."""
    return ProtobufFiles.of_set(protobuf_set(schema))
