"""Keys, values and headers as text on a line, both ways: for `produce` and for `consume`.

The law: what `consume` prints as JSON, hex or base64, `produce` reads back to the same bytes. Plain
text goes through as it is, whatever its encoding.
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
    """The bytes that one field of a line means."""
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
    r"""Text with the escapes for what is hard to type.

    >>> unescape(r"a\tb\\t")
    'a\tb\\t'
    """
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[0]), text)


def to_json(value: bytes | None) -> str | dict[str, str] | None:
    """Text as text; other bytes in a form that cannot be taken for text."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {BASE64: base64.b64encode(value).decode()}


def from_json(value: Any) -> bytes | None:
    """The counterpart of `to_json`; anything else is taken as the JSON that it is."""
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
            raise ValueError("headers are neither an object nor a list of key and value")
