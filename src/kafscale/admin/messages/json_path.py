"""Paths to fields of JSON, such as `customer.address.city` or `items[0].sku`. Pure.

A name that contains dots or brackets is quoted: `["a.b"].c`. A number indexes a list, with brackets
or without.
"""

import re
from typing import Any, Final

import msgspec

from kafscale.errors import InvalidRequestError

MISSING: Final = object()
"""The result for a field that does not exist; null is a value."""

_STEP: Final = re.compile(r"""\[(\d{1,9})\]|\["((?:[^"\\]|\\.)*)"\]|\.?([^.\[\]]+)""")


def parse(text: str) -> tuple[str, ...]:
    """Parse a path into its steps.

    >>> parse("items[0].sku"), parse('$.["a.b"].c')
    (('items', '0', 'sku'), ('a.b', 'c'))
    """
    rest = text.strip().removeprefix("$")
    steps = []
    position = 0
    if rest.startswith('.["'):
        rest = rest[1:]
    while position < len(rest):
        match = _STEP.match(rest, position)
        if match is None:
            raise InvalidRequestError(
                f"{text!r} is not a JSON path, such as customer.address.city or items[0].sku"
            )
        index, quoted, name = match.groups()
        steps.append(index or name or re.sub(r"\\(.)", r"\1", quoted or ""))
        position = match.end()
    if not steps:
        raise InvalidRequestError("a JSON path needs a name")
    return tuple(steps)


def find(value: Any, steps: tuple[str, ...]) -> Any:
    """The value at a path, or `MISSING`."""
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step, MISSING)
        elif isinstance(value, list) and step.isascii() and step.isdigit():
            index = int(step)
            value = value[index] if index < len(value) else MISSING
        else:
            return MISSING
    return value


def equals(value: Any, text: str) -> bool:
    """Compare a field with a text: strings directly, everything else as JSON.

    >>> equals("12", "12"), equals(12, "12"), equals(12.0, "12"), equals(None, "null")
    (True, True, True, True)
    >>> equals(True, "1"), equals("a", '"a"')
    (False, True)
    """
    if isinstance(value, str) and value == text:
        return True
    literal = _parse_literal(text)
    return bool(literal == value) and isinstance(literal, bool) == isinstance(value, bool)


def is_plain_text(text: str) -> bool:
    """True if only a string can equal the text.

    >>> is_plain_text("Rome"), is_plain_text("12"), is_plain_text("null")
    (True, False, False)
    """
    return bool(text) and _parse_literal(text) is MISSING


def _parse_literal(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return MISSING
