"""Options that several commands share."""

from collections.abc import Sequence
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
