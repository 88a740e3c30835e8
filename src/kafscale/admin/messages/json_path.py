"""Fields of JSON by their paths, such as `customer.address.city` or `items[0].sku`.

A name with dots or brackets in it is written in quotes: `["a.b"].c`. A number that stands where
there is a list is an index of it, with brackets or without. Pure.
"""

import re
from typing import Any, Final

import msgspec

from kafscale.errors import InvalidRequestError

MISSING: Final = object()
"""What is found where nothing is: null is something."""

_STEP: Final = re.compile(r"""\[(\d{1,9})\]|\["((?:[^"\\]|\\.)*)"\]|\.?([^.\[\]]+)""")


def parse(text: str) -> tuple[str, ...]:
    """The steps of a path.

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
                f"{text!r} is no path of JSON, such as customer.address.city or items[0].sku"
            )
        index, quoted, name = match.groups()
        steps.append(index or name or re.sub(r"\\(.)", r"\1", quoted or ""))
        position = match.end()
    if not steps:
        raise InvalidRequestError("a path of JSON needs a name")
    return tuple(steps)


def find(value: Any, steps: tuple[str, ...]) -> Any:
    """What is there, or `MISSING`."""
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
    """Whether a field is what somebody typed: a text as it is, all else as JSON.

    >>> equals("12", "12"), equals(12, "12"), equals(12.0, "12"), equals(None, "null")
    (True, True, True, True)
    >>> equals(True, "1"), equals("a", '"a"')
    (False, True)
    """
    if isinstance(value, str) and value == text:
        return True
    typed = _typed(text)
    return bool(typed == value) and isinstance(typed, bool) == isinstance(value, bool)


def is_plain_text(text: str) -> bool:
    """Whether only a text can be equal to what somebody typed.

    >>> is_plain_text("Rome"), is_plain_text("12"), is_plain_text("null")
    (True, False, False)
    """
    return bool(text) and _typed(text) is MISSING


def _typed(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return MISSING
