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
from collections.abc import Iterator
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

    __slots__ = ("_data", "_left", "_named", "position")

    def __init__(self, data: bytes, named: dict[str, Any]) -> None:
        self._data = data
        self._named = named
        self._left = VALUES_MAX
        self.position = 0

    def value(self, schema: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise InvalidRecordError(f"the value has more than {VALUES_MAX} elements")
        if depth > DEPTH_MAX:
            raise InvalidRecordError(f"the value is nested more than {DEPTH_MAX} deep")
        if isinstance(schema, list):
            return self._union(schema, depth)
        if isinstance(schema, str):
            schema = self._named.get(schema) or {"type": schema}
        match schema["type"]:
            case "record" | "error":
                fields = schema["fields"]
                return {field["name"]: self.value(field["type"], depth + 1) for field in fields}
            case "array":
                return [self.value(schema["items"], depth + 1) for _ in self._elements()]
            case "map":
                values = schema["values"]
                return {self._text(): self.value(values, depth + 1) for _ in self._elements()}
            case dict() | list() as nested:
                return self.value(nested, depth + 1)
        value = logical_types.to_json(schema, self._scalar(schema))
        return value.decode("latin-1") if isinstance(value, bytes) else value

    def _union(self, branches: list[Any], depth: int) -> Any:
        branch = self._choice(branches)
        value = self.value(branch, depth + 1)
        if branch == "null" or len(branches) - ("null" in branches) == 1:
            return value
        return {branch_name(branch): value}

    def _elements(self) -> Iterator[None]:
        """Count the elements of an array or a map; the count of a block is not trustworthy."""
        while count := self._long():
            if count < 0:
                self._long()  # The size of the block in bytes.
            for _ in range(abs(count)):
                yield

    def _scalar(self, schema: dict[str, Any]) -> Any:  # noqa: C901, PLR0911
        match schema["type"]:
            case "null":
                return None
            case "boolean":
                return self._boolean()
            case "int":
                return self._long(32)
            case "long":
                return self._long()
            case "float":
                return _float(*_FLOAT.unpack(self._bytes(_FLOAT.size)))
            case "double":
                return _float(*_DOUBLE.unpack(self._bytes(_DOUBLE.size)))
            case "bytes":
                return self._bytes(self._long())
            case "string":
                return self._text()
            case "enum":
                return self._choice(schema["symbols"])
            case "fixed":
                return self._bytes(schema["size"])
        raise InvalidRecordError(f"unknown Avro type {schema['type']}")

    def _choice(self, choices: list[Any]) -> Any:
        index = self._long()
        if not 0 <= index < len(choices):
            raise InvalidRecordError(f"invalid index {index} of {len(choices)}")
        return choices[index]

    def _boolean(self) -> bool:
        (byte,) = self._bytes(1)
        if byte > 1:
            raise InvalidRecordError(f"invalid boolean {byte}")
        return bool(byte)

    def _long(self, bits: int = 64) -> int:
        number = 0
        data, position = self._data, self.position
        for shift, byte in enumerate(data[position : position + _VARINT_BYTES_MAX]):
            number |= (byte & 0x7F) << (7 * shift)
            if byte < 0x80:
                self.position = position + shift + 1
                if number >= 2**bits:
                    raise InvalidRecordError(f"a number exceeds {bits} bits")
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


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
