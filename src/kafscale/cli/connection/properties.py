r"""Properties as Java writes them: a key and a value on each line, for the files of Kafka's tools.

    >>> parse("# who\nsasl.mechanism = PLAIN\nsasl.username: al\\\n  ice")
    {'sasl.mechanism': 'PLAIN', 'sasl.username': 'alice'}

The law: what `java.util.Properties` reads is read the same here. What keys mean is left to others.
"""

import re
from collections.abc import Iterator
from typing import Final

_SPACE: Final = " \t\f"
_KEY: Final = re.compile(r"((?:\\.|[^\\:= \t\f])*)[ \t\f]*[:=]?[ \t\f]*", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.)|$)", re.DOTALL)
_NAMED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse(text: str) -> dict[str, str]:
    """The values of the keys; the last one wins. `ValueError` for a broken escape."""
    found = {}
    for line in _lines(text):
        match = _KEY.match(line)
        assert match is not None, "an empty key matches any line"
        found[_unescaped(match[1])] = _unescaped(line[match.end() :])
    return found


def _lines(text: str) -> Iterator[str]:
    """Lines that say something, those put together that end with a backslash."""
    parts: list[str] = []
    for line in re.split(r"\r\n|\r|\n", text):
        stripped = line.lstrip(_SPACE)
        if not parts and (not stripped or stripped[0] in "#!"):
            continue
        if _goes_on(stripped):
            parts.append(stripped[:-1])
            continue
        yield "".join(parts) + stripped
        parts = []
    if parts:
        yield "".join(parts)


def _goes_on(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str) -> str:
    def meant(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2] == "u":
            raise ValueError(r"\u needs four hexadecimal digits after it")
        return _NAMED.get(match[2], match[2] or "")

    return _ESCAPE.sub(meant, text)
