"""Converts Avro's logical types to and from readable JSON text.

    date                          2024-02-29
    time-millis, time-micros      12:34:56.789
    timestamp-…                   2024-02-29T12:34:56.789Z; local ones without the Z
    decimal                       12.34, as text, because many readers truncate JSON numbers
    uuid                          its usual text

Invariant: the JSON reads back to the same bytes. A value without a text form, such as a year after
9999, stays a number, and numbers are always accepted. Pure.
"""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any, Final
from uuid import UUID

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY: Final = _EPOCH.date().toordinal()
_DAY_MICROS: Final = 24 * 60 * 60 * 1_000_000
_DIGITS_MAX: Final = 4096
"""More digits than real decimals have."""

_TIMES: Final = {"time-millis": 1000, "time-micros": 1}
_TIMESTAMPS: Final = {
    "timestamp-millis": 1000,
    "timestamp-micros": 1,
    "local-timestamp-millis": 1000,
    "local-timestamp-micros": 1,
}
"""The unit in microseconds."""


def to_json(schema: dict[str, Any], value: int | bytes | str) -> Any:
    """Convert a value to JSON; other values are returned unchanged."""
    logical = schema.get("logicalType")
    try:
        if isinstance(value, int):
            return _number_to_text(logical, value)
        if isinstance(value, bytes) and logical == "decimal":
            return _decimal_text(value, schema.get("scale", 0))
        if isinstance(value, bytes) and logical == "uuid":
            return str(UUID(bytes=value))
    except (ValueError, OverflowError):
        pass  # It has no text form.
    return value


def from_json(schema: dict[str, Any], value: Any) -> Any:
    """Convert JSON text to a number or bytes; other values are returned unchanged."""
    logical, kind = schema.get("logicalType"), schema["type"]
    if not isinstance(value, str):
        return value
    if kind in {"int", "long"}:
        return _text_to_number(logical, value)
    if kind in {"bytes", "fixed"} and logical == "decimal":
        return _decimal_bytes(value, schema)
    if kind == "fixed" and logical == "uuid":
        return UUID(value).bytes
    return value


def _number_to_text(logical: str | None, value: int) -> Any:
    if logical == "date":
        return date.fromordinal(_EPOCH_DAY + value).isoformat()
    if logical in _TIMES:
        micros = value * _TIMES[logical]
        if not 0 <= micros < _DAY_MICROS:
            return value
        return _trim_micros((_EPOCH + timedelta(microseconds=micros)).time().isoformat())
    if logical in _TIMESTAMPS:
        instant = _EPOCH + timedelta(microseconds=value * _TIMESTAMPS[logical])
        text = _trim_micros(instant.replace(tzinfo=None).isoformat())
        return text if logical.startswith("local") else f"{text}Z"
    return value


def _text_to_number(logical: str | None, text: str) -> int:
    if logical == "date":
        return date.fromisoformat(text).toordinal() - _EPOCH_DAY
    if logical in _TIMES:
        instant = datetime.combine(_EPOCH.date(), time.fromisoformat(text), UTC)
        return _micros(instant) // _TIMES[logical]
    if logical in _TIMESTAMPS:
        instant = datetime.fromisoformat(text)
        instant = instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant
        return _micros(instant) // _TIMESTAMPS[logical]
    raise ValueError(f"{text!r} is not a number")


def _micros(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(microseconds=1)


def _trim_micros(text: str) -> str:
    """Remove the zeros after milliseconds."""
    return text.removesuffix("000") if "." in text else text


def _decimal_text(value: bytes, scale: int) -> str:
    if len(value) > _DIGITS_MAX // 4:
        raise ValueError("the decimal has too many digits")
    unscaled = int.from_bytes(value, "big", signed=True)
    sign, digits = "-" if unscaled < 0 else "", str(abs(unscaled)).zfill(scale + 1)
    whole, fraction = (digits[:-scale], digits[-scale:]) if scale else (digits, "")
    return f"{sign}{whole}.{fraction}" if scale else f"{sign}{whole}"


def _decimal_bytes(text: str, schema: dict[str, Any]) -> bytes:
    scale = schema.get("scale", 0)
    if len(text) > _DIGITS_MAX:
        raise ValueError("the decimal has too many digits")
    with localcontext(prec=2 * _DIGITS_MAX):
        try:
            number = Decimal(text).scaleb(scale)
            unscaled = int(number)
        except (InvalidOperation, OverflowError, ValueError):
            raise ValueError(f"{text!r} is not a decimal") from None
        if unscaled != number:
            raise ValueError(f"{text} has more than {scale} digits after the point")
    if len(str(abs(unscaled))) > schema["precision"]:
        raise ValueError(f"{text} has more than {schema['precision']} digits")
    size = schema["size"] if schema["type"] == "fixed" else unscaled.bit_length() // 8 + 1
    return unscaled.to_bytes(size, "big", signed=True)
