"""JSON values one by one: the careful way, which says what is wrong with the bad ones.

The law: this is what decides whether a value is good. The rules:

    string      takes everything: strings as they are, other values as their JSON text
    numbers     are numbers in the type's range; a whole one is written without a fraction
    decimal     a number or a string that fits precision and scale exactly
    timestamp   ISO 8601; without a time zone, it is UTC
    date        YYYY-MM-DD
    binary      a string in base64
    a field that is absent is null, which `not null` forbids; a field too many is ignored

Two decoders of msgspec try a value: a strict one, which is right nearly always, then a patient one
for strings that are none and short forms of timestamps, at the price of Python code per value.
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
"""The least number that a float of 32 bits rounds to infinity."""

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
_PATIENT: Final = _STRICT | {pa.string(): msgspec.Raw, TIMESTAMP: str}


class RowReader:
    """Reads one object into a row of Python objects that Arrow takes for the schema's types."""

    __slots__ = ("_convert", "_patient", "_strict")

    def __init__(self, schema: pa.Schema) -> None:
        row = pa.struct(schema)
        self._strict = msgspec.json.Decoder(_python_type(row, is_patient=False))
        self._patient = msgspec.json.Decoder(_python_type(row, is_patient=True))
        self._convert = _conversion(row)

    def read(self, value: bytes) -> Row:
        try:
            row: Row = self._strict.decode(value)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            if self._convert is None:
                raise InvalidRecordError(reason_of(error)) from error
        else:
            return row
        try:
            converted: Row = self._convert("", self._patient.decode(value))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidRecordError(reason_of(error)) from error
        return converted


def reason_of(error: Exception) -> str:
    """What msgspec found, with the field first.

    >>> reason_of(msgspec.ValidationError("Expected `int | null`, got `str` - at `$.address.zip`"))
    'address.zip: expected int | null, got str'
    """
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    message, _, path = str(error).replace("`", "").partition(" - at $")
    message = message[:1].lower() + message[1:] if not message.startswith("JSON") else message
    return f"{path.removeprefix('.')}: {message}" if path else message


# --- what msgspec is to find ----------------------------------------------------------------------


def _python_type(type_: pa.DataType, *, is_patient: bool) -> Any:
    if pa.types.is_struct(type_):
        return _object_type(type_, is_patient=is_patient)
    if pa.types.is_list(type_):
        return list[_nullable_type(type_.value_type, is_patient=is_patient)]  # type: ignore[misc]
    if pa.types.is_map(type_):
        return dict[str, _nullable_type(type_.item_type, is_patient=is_patient)]  # type: ignore[misc]
    if pa.types.is_integer(type_):
        bound = 2 ** (type_.bit_width - 1)
        return Annotated[int, msgspec.Meta(ge=-bound, le=bound - 1)]
    if pa.types.is_decimal(type_):
        return Decimal
    return (_PATIENT if is_patient else _STRICT)[type_]


def _nullable_type(type_: pa.DataType, *, is_patient: bool) -> Any:
    found = _python_type(type_, is_patient=is_patient)
    return found if found is msgspec.Raw else found | None


def _object_type(type_: pa.DataType, *, is_patient: bool) -> Any:
    fields: dict[str, Any] = {}
    for field in type_:
        found = _python_type(field.type, is_patient=is_patient)
        if found is msgspec.Raw:  # It takes null too, and cannot be required: see below.
            fields[field.name] = found
        else:
            fields[field.name] = found | None if field.nullable else Required[found]
    make: Any = TypedDict
    return make("Object", fields, total=False)


# --- what the patient way leaves to do ------------------------------------------------------------


def _conversion(type_: pa.DataType) -> _Convert | None:
    """From what the patient decoder gives, None if that needs no change; takes the path first."""
    if pa.types.is_string(type_):
        return _text
    if pa.types.is_timestamp(type_):
        return _instant
    if pa.types.is_struct(type_):
        found = {field.name: _conversion(field.type) for field in type_}
        required = frozenset(field.name for field in type_ if not field.nullable)
        return _object_conversion({name: c for name, c in found.items() if c}, required)
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
                raise InvalidRecordError(f"{inner}: it is missing or null")
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
        raise InvalidRecordError(f"{path}: {reason_of(error)}") from error


def _instant(path: str, text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRecordError(f"{path}: it is no timestamp in ISO 8601") from error
