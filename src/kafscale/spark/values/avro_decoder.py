"""Decodes Avro values: with a given schema, or framed with the ID of a registered schema.

Framed values are read with their writer schema and resolved to the reader schema: the given one, or
else the newest of the subject in the registry. Without either, the columns grow with every schema
that is found, as `evolution` allows. Invariant: a value is valid only if it is read to its last
byte, because Avro has no other means to detect a wrong schema.

Avro types are mapped to Arrow types; every value of the Avro type fits the Arrow type:

    record, map, array      struct, map, list
    union of null and X     X, nullable like all columns
    other unions            JSON text, because a column has one type
    date, time, timestamp   the same, in microseconds of UTC; nanoseconds stay numbers
    decimal                 decimal, or text above 38 digits
    uuid, enum              text
    fixed                   binary
    recursive types         JSON text, because a column has a finite type
"""

import io
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa
from fastavro import _read_py as python_reader
from fastavro import schemaless_reader
from fastavro.read import SchemaResolutionError

from kafscale.errors import ConfigError, InvalidRecordError
from kafscale.serde.avro import schema as avro_schema
from kafscale.serde.registry import wire_format
from kafscale.serde.registry.client import RegisteredSchema, Registry, SchemaCache
from kafscale.serde.registry.references import avro_texts
from kafscale.spark.values import evolution
from kafscale.spark.values.base import TIMESTAMP, Decoded, Row, decode_rows, list_of

# --- decoders -------------------------------------------------------------------------------------

_DECODE_ERRORS: Final = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    RecursionError,
    SchemaResolutionError,
    TypeError,
    ValueError,
)
"""The errors of fastavro for bytes that do not match the schema."""

_TYPE_ERRORS: Final = (AttributeError, LookupError, RecursionError, TypeError, ValueError)


class AvroSchema:
    """A parsed schema, and the Arrow schema of its rows."""

    __slots__ = ("_convert", "_is_record", "arrow", "is_recursive", "parsed")

    def __init__(self, text: str, references: tuple[str, ...] = ()) -> None:
        """Parse the text of a schema; `references` are those it refers to, deepest first."""
        self.parsed, named = avro_schema.parse(text, references)
        types = TypeMap(named)
        try:
            type_, self._convert = types.arrow(self.parsed)
        except _TYPE_ERRORS as error:
            raise ConfigError(f"invalid Avro schema: {error!r}") from error
        self.is_recursive = types.is_recursive
        self._is_record = isinstance(self.parsed, dict) and self.parsed.get("type") == "record"
        if self._is_record and not pa.types.is_struct(type_):
            raise ConfigError("the Avro schema is a record without fields")
        self.arrow = pa.schema(type_.fields if self._is_record else [("value", type_)])

    def row(self, value: Any) -> Row:
        """Convert a value of fastavro to a row; other values than records get a column `value`."""
        if self._convert is not None and value is not None:
            value = self._convert(value)
        return value if self._is_record else {"value": value}


class AvroDecoder:
    """Decodes all values with one schema."""

    __slots__ = ("_schema", "schema")

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema
        self.schema = schema.arrow

    def decode(self, values: pa.BinaryArray) -> Decoded:
        return decode_rows(
            values, lambda value: _read(value, self._schema, None), lambda: self.schema
        )


class AvroRegistryDecoder:
    """Decodes each value with the schema that it names."""

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
        writer = from_registry(schema)
        if self._reader is None:
            self._schema = evolution.extend(self._schema or pa.schema([]), writer.arrow)
        return writer


def from_registry(schema: RegisteredSchema) -> AvroSchema:
    """Parse a registered schema with its references."""
    return AvroSchema(*avro_texts(schema))


def _read(payload: bytes, writer: AvroSchema, reader: AvroSchema | None) -> Row:
    stream = io.BytesIO(payload)
    # The compiled reader has no recursion limit and would crash the process.
    is_recursive = writer.is_recursive or (reader is not None and reader.is_recursive)
    read = python_reader.schemaless_reader if is_recursive else schemaless_reader
    try:
        value = read(stream, writer.parsed, None if reader is None else reader.parsed)
        row = (reader or writer).row(value)
    except _DECODE_ERRORS as error:
        raise InvalidRecordError(f"the value does not match the schema: {error!r}") from error
    rest = len(payload) - stream.tell()
    if rest:
        raise InvalidRecordError(f"{rest} bytes are left after the value")
    return row


# --- types ----------------------------------------------------------------------------------------

Convert: TypeAlias = Callable[[Any], Any]

_DECIMAL_DIGITS_MAX: Final = 38
_PRIMITIVES: Final = {
    "null": pa.string(),  # Tables have no type for a column of nulls.
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
_LOGICAL: Final = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time64("us"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): TIMESTAMP,
    ("long", "timestamp-micros"): TIMESTAMP,
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}


class ArrowType(NamedTuple):
    type: pa.DataType
    convert: Convert | None
    """Converts a value of fastavro that is not None; None if no conversion is needed."""


class TypeMap:
    """Maps the types of one schema; `named` are its named types."""

    __slots__ = ("_compounds", "_enclosing", "_named", "is_recursive")

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._enclosing: list[str] = []
        self._compounds: dict[str, Callable[[dict[str, Any]], ArrowType]] = {
            "record": self._record,
            "array": self._array,
            "map": self._map,
        }
        self.is_recursive = False

    def arrow(self, schema: Any) -> ArrowType:
        if isinstance(schema, list):
            return self._union(schema)
        if isinstance(schema, str):
            known = _PRIMITIVES.get(schema)
            return self.arrow(self._named[schema]) if known is None else ArrowType(known, None)
        kind = schema["type"]
        compound = self._compounds.get(kind)
        return _logical(kind, schema) if compound is None else compound(schema)

    def _union(self, branches: list[Any]) -> ArrowType:
        if not branches:
            raise ConfigError("the Avro schema has an empty union")
        real = [branch for branch in branches if branch != "null"]
        if len(real) == 1:
            return self.arrow(real[0])
        for branch in real:
            self.arrow(branch)  # Detects recursion and invalid types.
        return ArrowType(pa.string(), _json_text)

    def _record(self, schema: dict[str, Any]) -> ArrowType:
        name = schema["name"]
        if name in self._enclosing:
            self.is_recursive = True
            return ArrowType(pa.string(), _json_text)
        self._enclosing.append(name)
        fields = {field["name"]: self.arrow(field["type"]) for field in schema["fields"]}
        self._enclosing.pop()
        if not fields:
            return ArrowType(pa.string(), _json_text)
        converts = {name: arrow.convert for name, arrow in fields.items() if arrow.convert}
        type_ = pa.struct([(name, arrow.type) for name, arrow in fields.items()])
        return ArrowType(type_, _record_convert(converts) if converts else None)

    def _array(self, schema: dict[str, Any]) -> ArrowType:
        if self._is_empty(schema["items"], ()):
            # A few bytes could encode a list of any length.
            raise ConfigError("the Avro schema has an array of elements without bytes")
        type_, convert = self.arrow(schema["items"])
        return ArrowType(
            list_of(type_),
            convert and (lambda values: [None if v is None else convert(v) for v in values]),
        )

    def _map(self, schema: dict[str, Any]) -> ArrowType:
        type_, convert = self.arrow(schema["values"])
        return ArrowType(
            pa.map_(pa.string(), type_),
            convert
            and (lambda values: {k: None if v is None else convert(v) for k, v in values.items()}),
        )

    def _is_empty(self, schema: Any, within: tuple[str, ...]) -> bool:
        """Whether values of the type take no bytes."""
        if isinstance(schema, str) and schema in self._named:
            schema = self._named[schema]
        if not isinstance(schema, dict):
            return bool(schema == "null")
        kind = schema["type"]
        if kind == "record":
            name = schema["name"]
            return name in within or all(
                self._is_empty(field["type"], (*within, name)) for field in schema["fields"]
            )
        if kind == "fixed":
            return bool(schema["size"] == 0)
        return kind not in {"array", "map", "enum"} and self._is_empty(kind, within)


def _record_convert(converts: dict[str, Convert]) -> Convert:
    def convert(row: dict[str, Any]) -> dict[str, Any]:
        # A copy: rows share the defaults of a schema.
        converted = dict(row)
        for name, convert_field in converts.items():
            value = row[name]
            if value is not None:
                converted[name] = convert_field(value)
        return converted

    return convert


def _logical(kind: str, schema: dict[str, Any]) -> ArrowType:
    logical = schema.get("logicalType")
    if logical == "decimal" and kind in {"bytes", "fixed"}:
        precision, scale = schema["precision"], schema.get("scale", 0)
        if precision > _DECIMAL_DIGITS_MAX:
            return ArrowType(pa.string(), str)
        return ArrowType(pa.decimal128(precision, scale), None)
    if logical == "uuid":
        return ArrowType(pa.string(), str)
    return ArrowType(_LOGICAL.get((kind, logical or ""), _PRIMITIVES[kind]), None)


def _json_text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
