"""Writes JSON data as Avro values: the counterpart of `reader`.

Invariants: a value that does not match the schema is rejected with its path; a missing field gets
its default, or is rejected; an unknown field is rejected, because it would be lost. Unions of
several types accept `{"name of the branch": value}`, or a bare value, for which the first matching
branch is used. Pure.
"""

import reprlib
import struct
from collections.abc import Iterable
from typing import Any, Final, TypeVar

from kafscale.errors import InvalidRecordError, InvalidRequestError
from kafscale.serde.avro import logical_types
from kafscale.serde.avro.reader import DEPTH_MAX, VALUES_MAX, branch_name
from kafscale.serde.avro.schema import AvroSchema

STEPS_MAX: Final = VALUES_MAX * 3 // 2
"""Bounds the attempts at nested unions; what `reader` returns takes at most `VALUES_MAX` steps."""

_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")
_NON_FINITE: Final = frozenset({"NaN", "Infinity", "-Infinity"})
_INTEGER_BITS: Final = {"int": 32, "long": 64}
_Type = TypeVar("_Type")
_CONVERSION_ERRORS: Final = (struct.error, OverflowError, TypeError, ValueError)


def write(schema: AvroSchema, value: Any) -> bytes:
    return _Writer(schema.named).encode(schema.parsed, value, ())


class _Writer:
    __slots__ = ("_left", "_named")

    def __init__(self, named: dict[str, Any]) -> None:
        self._named = named
        self._left = STEPS_MAX

    def encode(self, schema: Any, value: Any, path: tuple[str, ...]) -> bytes:
        self._left -= 1
        if self._left < 0:
            raise InvalidRequestError(f"matching the schema takes more than {STEPS_MAX} steps")
        if len(path) > DEPTH_MAX:
            raise InvalidRecordError(f"the value is nested more than {DEPTH_MAX} deep")
        if isinstance(schema, list):
            return self._union(schema, value, path)
        if isinstance(schema, str):
            schema = self._named.get(schema) or {"type": schema}
        match schema["type"]:
            case "record" | "error":
                return self._record(schema, value, path)
            case "array":
                items = _expect(list, value, path, "a list")
                return _block(
                    self.encode(schema["items"], each, (*path, str(index)))
                    for index, each in enumerate(items)
                )
            case "map":
                return _block(
                    _with_length(name.encode()) + self.encode(schema["values"], each, (*path, name))
                    for name, each in _expect(dict, value, path, "an object").items()
                )
            case dict() | list() as nested:
                return self.encode(nested, value, path)
        try:
            return _scalar(schema, logical_types.from_json(schema, value))
        except _CONVERSION_ERRORS as error:
            reason = f"{_brief(value)} is not a valid {schema['type']}: {error}"
            raise _mismatch(path, reason) from None

    def _union(self, branches: list[Any], value: Any, path: tuple[str, ...]) -> bytes:
        if value is None and "null" in branches:
            return _long(branches.index("null"))
        if isinstance(value, dict) and len(value) == 1:
            ((name, inner),) = value.items()
            for index, branch in enumerate(branches):
                if branch_name(branch) == name:
                    try:
                        return _long(index) + self.encode(branch, inner, (*path, name))
                    except InvalidRecordError:
                        break  # A record or a map may have a key of that name.
        real = [(index, branch) for index, branch in enumerate(branches) if branch != "null"]
        for index, branch in real:
            try:
                return _long(index) + self.encode(branch, value, path)
            except InvalidRecordError:
                if len(real) == 1:
                    raise
        names = ", ".join(map(branch_name, branches))
        raise _mismatch(path, f"{_brief(value)} is none of {names}")

    def _record(self, schema: dict[str, Any], value: Any, path: tuple[str, ...]) -> bytes:
        name = schema["name"]
        values = _expect(dict, value, path, f"an object with the fields of {name}")
        fields = {field["name"]: field for field in schema["fields"]}
        unknown = [each for each in values if each not in fields]
        if unknown:
            raise _mismatch(path, f"{name} has no field {unknown[0]}")
        encoded = []
        for name, field in fields.items():
            if name not in values and "default" not in field:
                raise _mismatch((*path, name), "the field is missing and has no default")
            inner = values[name] if name in values else field["default"]
            encoded.append(self.encode(field["type"], inner, (*path, name)))
        return b"".join(encoded)


def _scalar(schema: dict[str, Any], value: Any) -> bytes:  # noqa: C901, PLR0911
    kind = schema["type"]
    match kind:
        case "null" if value is None:
            return b""
        case "boolean" if isinstance(value, bool):
            return bytes([value])
        case "int" | "long" if isinstance(value, int) and not isinstance(value, bool):
            bits = _INTEGER_BITS[kind]
            if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
                raise ValueError(f"it exceeds {bits} bits")
            return _long(value)
        case "float" | "double":
            return (_FLOAT if kind == "float" else _DOUBLE).pack(_number(value))
        case "bytes" if isinstance(value, bytes | str):
            return _with_length(_raw(value))
        case "fixed" if isinstance(value, bytes | str):
            raw = _raw(value)
            if len(raw) != schema["size"]:
                raise ValueError(f"it has {len(raw)} bytes instead of {schema['size']}")
            return raw
        case "string" if isinstance(value, str):
            return _with_length(value.encode())
        case "enum" if isinstance(value, str):
            if value not in schema["symbols"]:
                raise ValueError(f"it is none of {', '.join(schema['symbols'])}")
            return _long(schema["symbols"].index(value))
    raise TypeError(f"unexpected {type(value).__name__}")


def _number(value: Any) -> float:
    if isinstance(value, bool) or not (isinstance(value, int | float) or value in _NON_FINITE):
        raise TypeError("it is not a number")
    return float(value)


def _raw(value: bytes | str) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError("bytes must be characters from \\u0000 to \\u00ff") from None


def _block(elements: Iterable[bytes]) -> bytes:
    encoded = list(elements)
    return _long(len(encoded)) + b"".join(encoded) + b"\0" if encoded else b"\0"


def _expect(type_: type[_Type], value: Any, path: tuple[str, ...], meaning: str) -> _Type:
    if not isinstance(value, type_):
        raise _mismatch(path, f"{_brief(value)} is not {meaning}")
    return value


def _with_length(content: bytes) -> bytes:
    return _long(len(content)) + content


def _long(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _mismatch(path: tuple[str, ...], reason: str) -> InvalidRecordError:
    where = f"at {'.'.join(path)}: " if path else ""
    return InvalidRecordError(f"the value does not match the schema: {where}{reason}")


def _brief(value: Any) -> str:
    return reprlib.repr(value)  # Short, and fast for large values.
