"""What several commands take on their command line in the same way."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    """How the bytes of a key or value are written on a line."""

    TEXT = "text"
    JSON = "json"
    HEX = "hex"
    BASE64 = "base64"


FormatOption = Annotated[
    Format, typer.Option("--format", "-f", help="How keys and values are written.")
]


def parse_pairs(pairs: Sequence[str]) -> list[tuple[str, str]]:
    """The names and values that options of the form key=value give.

    >>> parse_pairs(["retention.ms=1000", "note=a=b"])
    [('retention.ms', '1000'), ('note', 'a=b')]
    """
    found = []
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise typer.BadParameter(f"{pair!r} is not of the form key=value")
        found.append((key.strip(), value))
    return found
