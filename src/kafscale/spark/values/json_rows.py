"""The exact reader of JSON: reads values one by one and reports why one is invalid.

This reader defines which values are valid. The rules:

    string      strings unchanged, other values as their JSON text
    numbers     numbers in the range of the type; integers are written without a fraction
    decimal     a number or a string that fits precision and scale exactly
    timestamp   ISO 8601; UTC if there is no time zone
    date        YYYY-MM-DD
    binary      a string in base64
    a missing field is null, which `not null` forbids; an unknown field is ignored

Two msgspec decoders try a value: a strict one, which nearly always succeeds, then a lenient one for
other values in string columns and short forms of timestamps, which runs Python code per value.
"""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Final, Required, TypedDict

import msgspec
import pyarrow as pa

from kafscale.errors import InvalidRecordError
from kafscale.spark.values.base import TIMESTAMP, Row

_FLOAT32_END: Final = 2.0**128 - 2.0**103
"""The smallest number that a 32-bit float rounds to infinity."""

_Convert = Callable[[str, Any], Any]
_STRICT: Final[dict[pa.DataType, Any]] = {
    pa.bool_(): bool,
    pa.float32(): Annotated[float, msgspec.Meta(gt=-_FLOAT32_END, lt=_FLOAT32_END)],
    pa.float64(): float,
    pa.string(): str,
    pa.binary(): bytes,
    pa.date32(): date,
    TIMESTAMP: datetime,
}
_LENIENT: Final = _STRICT | {pa.string(): msgspec.Raw, TIMESTAMP: str}


class RowReader:
    """Reads one object into a row of Python objects for the Arrow types of the schema."""

    __slots__ = ("_convert", "_lenient", "_strict")

    def __init__(self, schema: pa.Schema) -> None:
        row = pa.struct(schema)
        self._strict = msgspec.json.Decoder(_python_type(row, is_lenient=False))
        self._lenient = msgspec.json.Decoder(_python_type(row, is_lenient=True))
        self._convert = _conversion(row)

    def read(self, value: bytes) -> Row:
        try:
            row: Row = self._strict.decode(value)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            if self._convert is None:
                raise InvalidRecordError(format_reason(error)) from error
        else:
            return row
        try:
            converted: Row = self._convert("", self._lenient.decode(value))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidRecordError(format_reason(error)) from error
        return converted


def format_reason(error: Exception) -> str:
    """Format an error of msgspec, with the field first.

    >>> error = msgspec.ValidationError("Expected `int | null`, got `str` - at `$.address.zip`")
    >>> format_reason(error)
    'address.zip: expected int | null, got str'
    """
    if isinstance(error, RecursionError):
        return "the value is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "the value is not UTF-8"
    message, _, path = str(error).replace("`", "").partition(" - at $")
    message = message[:1].lower() + message[1:] if not message.startswith("JSON") else message
    return f"{path.removeprefix('.')}: {message}" if path else message


# --- types for msgspec ----------------------------------------------------------------------------


def _python_type(type_: pa.DataType, *, is_lenient: bool) -> Any:
    if pa.types.is_struct(type_):
        return _object_type(type_, is_lenient=is_lenient)
    if pa.types.is_list(type_):
        return list[_nullable_type(type_.value_type, is_lenient=is_lenient)]  # type: ignore[misc]
    if pa.types.is_map(type_):
        return dict[str, _nullable_type(type_.item_type, is_lenient=is_lenient)]  # type: ignore[misc]
    if pa.types.is_integer(type_):
        bound = 2 ** (type_.bit_width - 1)
        return Annotated[int, msgspec.Meta(ge=-bound, le=bound - 1)]
    if pa.types.is_decimal(type_):
        return Decimal
    return (_LENIENT if is_lenient else _STRICT)[type_]


def _nullable_type(type_: pa.DataType, *, is_lenient: bool) -> Any:
    python_type = _python_type(type_, is_lenient=is_lenient)
    return python_type if python_type is msgspec.Raw else python_type | None


def _object_type(type_: pa.DataType, *, is_lenient: bool) -> Any:
    fields: dict[str, Any] = {}
    for field in type_:
        python_type = _python_type(field.type, is_lenient=is_lenient)
        if (
            python_type is msgspec.Raw
        ):  # It accepts null; `_object_conversion` checks required fields.
            fields[field.name] = python_type
        else:
            fields[field.name] = python_type | None if field.nullable else Required[python_type]
    make: Any = TypedDict
    return make("Object", fields, total=False)


# --- conversion of lenient values -----------------------------------------------------------------


def _conversion(type_: pa.DataType) -> _Convert | None:
    """Return a conversion of lenient values, called with the path; None if none is needed."""
    if pa.types.is_string(type_):
        return _text
    if pa.types.is_timestamp(type_):
        return _timestamp
    if pa.types.is_struct(type_):
        conversions = {field.name: _conversion(field.type) for field in type_}
        required = frozenset(field.name for field in type_ if not field.nullable)
        return _object_conversion({name: c for name, c in conversions.items() if c}, required)
    if pa.types.is_list(type_):
        element = _conversion(type_.value_type)
        return element and (
            lambda path, values: [
                value if value is None else element(f"{path}[{index}]", value)
                for index, value in enumerate(values)
            ]
        )
    if pa.types.is_map(type_):
        item = _conversion(type_.item_type)
        return item and (
            lambda path, values: {
                key: value if value is None else item(f"{path}.{key}", value)
                for key, value in values.items()
            }
        )
    return None


def _object_conversion(
    conversions: dict[str, _Convert], required: frozenset[str]
) -> _Convert | None:
    if not conversions:
        return None

    def convert(path: str, row: Row) -> Row:
        converted = dict(row)
        for name, conversion in conversions.items():
            inner = f"{path}.{name}" if path else name
            value = row.get(name)
            if value is not None:
                value = converted[name] = conversion(inner, value)
            if value is None and name in required:
                raise InvalidRecordError(f"{inner}: the field is missing or null")
        return converted

    return convert


def _text(path: str, raw: msgspec.Raw) -> str | None:
    content = bytes(raw)
    if content == b"null":
        return None
    try:
        if content.startswith(b'"'):
            return msgspec.json.decode(content, type=str)
        return content.decode()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRecordError(f"{path}: {format_reason(error)}") from error


def _timestamp(path: str, text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRecordError(f"{path}: not an ISO 8601 timestamp") from error
