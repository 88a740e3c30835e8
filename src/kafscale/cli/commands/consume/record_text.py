"""Encodes and decodes keys, values and headers as text, for `produce` and `consume`.

Invariant: `produce` reads the JSON, hex or base64 that `consume` prints back to the same bytes. The
format text copies bytes unchanged.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable
from typing import Any, Final

from kafscale.cli.options import Format
from kafscale.records import Header

BASE64: Final = "base64"
_HEADER: Final = {"key", "value"}
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}


ENCODERS: Final[dict[Format, Callable[[bytes], bytes]]] = {
    Format.TEXT: bytes,
    Format.HEX: binascii.hexlify,
    Format.BASE64: base64.b64encode,
}


def decode(form: Format, text: bytes) -> bytes:
    """Decode one field of a line."""
    try:
        match form:
            case Format.HEX:
                return bytes.fromhex(text.decode("ascii"))
            case Format.BASE64:
                return base64.b64decode(text, validate=True)
            case _:
                return text
    except ValueError:
        raise ValueError(f"{text.decode(errors='replace')!r} is not {form}") from None


def unescape(text: str) -> str:
    r"""Replace the escapes \n, \t, \r, \0 and \\.

    >>> unescape(r"a\tb\\t")
    'a\tb\\t'
    """
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[0]), text)


def to_json(value: bytes | None) -> str | dict[str, str] | None:
    """UTF-8 as a string; other bytes as `{"base64": ...}`."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {BASE64: base64.b64encode(value).decode()}


def from_json(value: Any) -> bytes | None:
    """The inverse of `to_json`; any other JSON value is encoded as JSON text."""
    match value:
        case None:
            return None
        case str():
            return value.encode()
        case {"base64": str(encoded)} if len(value) == 1:
            return decode(Format.BASE64, encoded.encode())
        case _:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def headers_to_json(headers: tuple[Header, ...]) -> list[dict[str, Any]]:
    return [{"key": header.key, "value": to_json(header.value)} for header in headers]


def headers_from_json(value: Any) -> tuple[Header, ...]:
    """Headers as a list of objects with key and value, or as one object by their keys."""
    match value:
        case None:
            return ()
        case dict():
            return tuple(Header(key, from_json(each)) for key, each in value.items())
        case list() if all(isinstance(each, dict) and set(each) == _HEADER for each in value):
            return tuple(Header(str(each["key"]), from_json(each["value"])) for each in value)
        case _:
            raise ValueError("headers must be an object, or a list of objects with key and value")
