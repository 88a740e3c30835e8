"""Reads Avro values as JSON data.

    union of null and X       X, or null
    other unions              {"name of the branch": value}, as in Avro's JSON encoding
    bytes, fixed              text with a character for each byte, as in Avro's JSON encoding
    NaN, Infinity             text, because JSON has no such numbers
    dates, decimals, …        see `logical_types`

Invariants: `writer` produces the same bytes again, except for the order and blocks of maps and
arrays; a value is valid only if it is read to its last byte, because Avro has no other means to
detect a wrong schema; and because a few bytes can encode many values (a null takes no byte, a
nested list one), at most `VALUES_MAX` values are read, `DEPTH_MAX` deep. Pure.
"""

import math
from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from kafscale.errors import InvalidRecordError
from kafscale.serde.avro import logical_types
from kafscale.serde.avro.schema import NAMED, AvroSchema

VALUES_MAX: Final = 100_000
DEPTH_MAX: Final = 64
_FLOAT: Final = Struct("<f")
_DOUBLE: Final = Struct("<d")
_VARINT_BYTES_MAX: Final = 10


def read(schema: AvroSchema, payload: bytes) -> Any:
    """Read the value that `payload` encodes."""
    reader = _Reader(payload, schema.named)
    value = reader.value(schema.parsed, 0)
    rest = len(payload) - reader.position
    if rest:
        raise InvalidRecordError(f"{rest} bytes are left after the value")
    return value


class _Reader:
    """Reads one value."""

    __slots__ = ("_compounds", "_data", "_left", "_named", "_primitives", "position")

    def __init__(self, data: bytes, named: dict[str, Any]) -> None:
        self._data = data
        self._named = named
        self._left = VALUES_MAX
        self.position = 0
        self._compounds: dict[str, Callable[[dict[str, Any], int], Any]] = {
            "record": self._record,
            "error": self._record,
            "array": self._array,
            "map": self._map,
            "enum": self._enum,
            "fixed": self._fixed,
        }
        self._primitives: dict[str, Callable[[], Any]] = {
            "null": lambda: None,
            "boolean": self._boolean,
            "int": self._int,
            "long": self._long,
            "float": lambda: _float(*_FLOAT.unpack(self._bytes(_FLOAT.size))),
            "double": lambda: _float(*_DOUBLE.unpack(self._bytes(_DOUBLE.size))),
            "bytes": lambda: self._bytes(self._long()),
            "string": self._text,
        }

    def value(self, schema: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise InvalidRecordError(f"the value has more than {VALUES_MAX} elements")
        if depth > DEPTH_MAX:
            raise InvalidRecordError(f"the value is nested more than {DEPTH_MAX} deep")
        if isinstance(schema, list):
            return self._union(schema, depth)
        if isinstance(schema, str):
            named = self._named.get(schema)
            return self._plain(schema) if named is None else self.value(named, depth)
        kind = schema["type"]
        compound = self._compounds.get(kind) if isinstance(kind, str) else self._nested
        if compound is not None:
            return compound(schema, depth)
        return _to_text(logical_types.to_json(schema, self._raw(kind)))

    def _nested(self, schema: dict[str, Any], depth: int) -> Any:
        return self.value(schema["type"], depth + 1)

    def _record(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        return {field["name"]: self.value(field["type"], depth + 1) for field in schema["fields"]}

    def _enum(self, schema: dict[str, Any], _: int) -> Any:
        return self._choice(schema["symbols"])

    def _fixed(self, schema: dict[str, Any], _: int) -> Any:
        return _to_text(logical_types.to_json(schema, self._bytes(schema["size"])))

    def _union(self, branches: list[Any], depth: int) -> Any:
        branch = self._choice(branches)
        value = self.value(branch, depth + 1)
        if branch == "null" or len(branches) - ("null" in branches) == 1:
            return value
        return {branch_name(branch): value}

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        items = schema["items"]
        values: list[Any] = []
        while count := self._block():
            # One by one: the count of a block is not trustworthy.
            for _ in range(count):
                values.append(self.value(items, depth + 1))  # noqa: PERF401
        return values

    def _map(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        items = schema["values"]
        values: dict[str, Any] = {}
        while count := self._block():
            for _ in range(count):
                key = self._text()
                values[key] = self.value(items, depth + 1)
        return values

    def _block(self) -> int:
        count = self._long()
        if count < 0:
            self._long()  # The size of the block in bytes.
            return -count
        return count

    def _choice(self, choices: list[Any]) -> Any:
        index = self._long()
        if not 0 <= index < len(choices):
            raise InvalidRecordError(f"invalid index {index} of {len(choices)}")
        return choices[index]

    def _plain(self, kind: str) -> Any:
        return _to_text(self._raw(kind))

    def _raw(self, kind: str) -> Any:
        primitive = self._primitives.get(kind)
        if primitive is None:
            raise InvalidRecordError(f"unknown Avro type {kind}")
        return primitive()

    def _boolean(self) -> bool:
        (byte,) = self._bytes(1)
        if byte > 1:
            raise InvalidRecordError(f"invalid boolean {byte}")
        return bool(byte)

    def _int(self) -> int:
        number = self._long()
        if not -(2**31) <= number < 2**31:
            raise InvalidRecordError(f"int out of range: {number}")
        return number

    def _long(self) -> int:
        number = 0
        data, position = self._data, self.position
        for shift, byte in enumerate(data[position : position + _VARINT_BYTES_MAX]):
            number |= (byte & 0x7F) << (7 * shift)
            if byte < 0x80:
                self.position = position + shift + 1
                if number >= 2**64:
                    raise InvalidRecordError("a number exceeds 64 bits")
                return (number >> 1) ^ -(number & 1)
        raise InvalidRecordError("the value ends within a number")

    def _text(self) -> str:
        try:
            return self._bytes(self._long()).decode()
        except UnicodeDecodeError as error:
            raise InvalidRecordError(f"a string is not UTF-8: {error.reason}") from None

    def _bytes(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self._data):
            raise InvalidRecordError(f"the value ends within a field of {size} bytes")
        data = self._data[self.position : end]
        self.position = end
        return data


def branch_name(branch: Any) -> str:
    """Return the name of a branch of a union: that of a named type, else its type."""
    if isinstance(branch, str):
        return branch
    kind = branch["type"]
    return str(branch["name"] if kind in NAMED else kind)


def _to_text(value: Any) -> Any:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
