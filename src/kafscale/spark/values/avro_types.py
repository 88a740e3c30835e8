"""What an Avro schema is in Arrow, and how what fastavro reads becomes what Arrow takes.

    record, map, array      struct, map, list
    a union of null and X   X, which may be null as everything may
    other unions            JSON text, for no column has two types
    date, time, timestamp   the same, instants in microseconds of UTC; nanoseconds stay numbers
    decimal                 decimal, or text above 38 digits
    uuid, enum              text
    fixed                   binary
    a type within itself    JSON text, for columns have an end

The law: every value of the Avro type fits the Arrow type. Pure.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa

from kafscale.errors import ConfigError
from kafscale.spark.values.base import TIMESTAMP, list_of

Convert: TypeAlias = Callable[[Any], Any]

_DECIMAL_DIGITS_MAX: Final = 38
_PRIMITIVES: Final = {
    "null": pa.string(),  # A column of nothing but nulls: tables have no type for it.
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
    """From what fastavro reads; None if that needs no change. It is never given None."""


class TypeMap:
    """Maps the types of one schema, in which `named` says what the names mean."""

    __slots__ = ("_compounds", "_named", "_within", "is_recursive")

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._within: list[str] = []
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
            raise ConfigError("the schema has a union of nothing")
        real = [branch for branch in branches if branch != "null"]
        if len(real) == 1:
            return self.arrow(real[0])
        for branch in real:
            self.arrow(branch)  # For what it tells about recursion, and refuses.
        return ArrowType(pa.string(), _json_text)

    def _record(self, schema: dict[str, Any]) -> ArrowType:
        name = schema["name"]
        if name in self._within:
            self.is_recursive = True
            return ArrowType(pa.string(), _json_text)
        self._within.append(name)
        found = {field["name"]: self.arrow(field["type"]) for field in schema["fields"]}
        self._within.pop()
        if not found:
            return ArrowType(pa.string(), _json_text)
        converts = {name: arrow.convert for name, arrow in found.items() if arrow.convert}
        type_ = pa.struct([(name, arrow.type) for name, arrow in found.items()])
        return ArrowType(type_, _record_convert(converts) if converts else None)

    def _array(self, schema: dict[str, Any]) -> ArrowType:
        if self._is_empty(schema["items"], ()):
            # A few bytes could claim a list without end.
            raise ConfigError("the schema has an array of elements that take no bytes")
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
        """Whether values of the type take no bytes at all."""
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
        # A copy: defaults of a schema are shared between rows.
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
