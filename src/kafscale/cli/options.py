"""Options that several commands share."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    """Text formats for the bytes of keys and values."""

    TEXT = "text"
    JSON = "json"
    HEX = "hex"
    BASE64 = "base64"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="Format of keys and values.")]


def parse_option(option: str, text: str, parse: Callable[[str], int]) -> int:
    """The value of an option: a size or a duration."""
    try:
        return parse(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} {error}", param_hint=option) from None


def parse_pairs(pairs: Sequence[str]) -> list[tuple[str, str]]:
    """The names and values that options of the form key=value give.

    >>> parse_pairs(["retention.ms=1000", "note=a=b"])
    [('retention.ms', '1000'), ('note', 'a=b')]
    """
    parsed = []
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise typer.BadParameter(f"{pair!r} is not of the form key=value")
        parsed.append((key.strip(), value))
    return parsed
