"""Values in Avro: with a given schema, or framed with the id of one in a registry.

Framed values are read with the schema that they were written with and resolved to the reader's:
the one that was given, or else the newest of the registry's subject. Where there is neither, the
columns grow with every schema that is met, as `evolution` allows. The law: a value is good only if
it is read to its last byte, for Avro has no other way to tell that a schema is the wrong one.
"""

import io
from typing import Any, Final

import pyarrow as pa
from fastavro import _read_py as python_reader
from fastavro import schemaless_reader
from fastavro.read import SchemaResolutionError

from kafscale.errors import ConfigError, InvalidRecordError
from kafscale.serde.avro import schema as avro_schema
from kafscale.serde.registry import wire_format
from kafscale.serde.registry.cache import SchemaCache
from kafscale.serde.registry.client import RegisteredSchema, Registry
from kafscale.serde.registry.references import avro_texts
from kafscale.spark.values import evolution
from kafscale.spark.values.avro_types import TypeMap
from kafscale.spark.values.base import Decoded, Row, decode_rows

_NOT_AVRO: Final = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    RecursionError,
    SchemaResolutionError,
    TypeError,
    ValueError,
)
"""How fastavro meets bytes that are not what the schema says: it says it in many ways."""

_NOT_FOR_COLUMNS: Final = (AttributeError, LookupError, RecursionError, TypeError, ValueError)


class AvroSchema:
    """A schema that can be read with; the Arrow schema is that of what is read."""

    __slots__ = ("_convert", "_is_record", "arrow", "is_recursive", "parsed")

    def __init__(self, text: str, references: tuple[str, ...] = ()) -> None:
        """Take the text of a schema, and the texts of those it refers to, deepest first."""
        self.parsed, named = avro_schema.parse(text, references)
        types = TypeMap(named)
        try:
            type_, self._convert = types.arrow(self.parsed)
        except _NOT_FOR_COLUMNS as error:
            raise ConfigError(f"the schema is not one of Avro: {error!r}") from error
        self.is_recursive = types.is_recursive
        self._is_record = isinstance(self.parsed, dict) and self.parsed.get("type") == "record"
        if self._is_record and not pa.types.is_struct(type_):
            raise ConfigError("the schema is a record without fields")
        self.arrow = pa.schema(type_.fields if self._is_record else [("value", type_)])

    def row(self, value: Any) -> Row:
        """What fastavro has read, as a row; a value that is no record is in the column `value`."""
        if self._convert is not None and value is not None:
            value = self._convert(value)
        return value if self._is_record else {"value": value}


class AvroDecoder:
    """Reads all values with one schema."""

    __slots__ = ("_schema", "schema")

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema
        self.schema = schema.arrow

    def decode(self, values: pa.BinaryArray) -> Decoded:
        return decode_rows(
            values, lambda value: _read(value, self._schema, None), lambda: self.schema
        )


class AvroRegistryDecoder:
    """Reads each value with the schema that it names."""

    __slots__ = ("_reader", "_schema", "_writers")

    def __init__(self, registry: Registry, reader: AvroSchema | None) -> None:
        self._reader = reader
        self._schema = None if reader is None else reader.arrow
        self._writers = SchemaCache(registry, self._prepare)

    @property
    def schema(self) -> pa.Schema | None:
        return self._schema

    def decode(self, values: pa.BinaryArray) -> Decoded:
        self._writers.begin_batch()
        return decode_rows(values, self._read, lambda: self._schema or pa.schema([]))

    def _read(self, value: bytes) -> Row:
        schema_id, payload = wire_format.split(value)
        return _read(payload, self._writers.get(schema_id), self._reader)

    def _prepare(self, schema: RegisteredSchema) -> AvroSchema:
        writer = registered(schema)
        if self._reader is None:
            self._schema = evolution.extend(self._schema or pa.schema([]), writer.arrow)
        return writer


def registered(schema: RegisteredSchema) -> AvroSchema:
    """A registry's schema, with those that it refers to."""
    return AvroSchema(*avro_texts(schema))


def _read(payload: bytes, writer: AvroSchema, reader: AvroSchema | None) -> Row:
    stream = io.BytesIO(payload)
    # The compiled reader recurses without a bound, and takes the process with it.
    is_recursive = writer.is_recursive or (reader is not None and reader.is_recursive)
    read = python_reader.schemaless_reader if is_recursive else schemaless_reader
    try:
        value = read(stream, writer.parsed, None if reader is None else reader.parsed)
        row = (reader or writer).row(value)
    except _NOT_AVRO as error:
        raise InvalidRecordError(f"it does not fit the schema: {error!r}") from error
    rest = len(payload) - stream.tell()
    if rest:
        raise InvalidRecordError(f"{rest} bytes are left when the schema is read")
    return row
