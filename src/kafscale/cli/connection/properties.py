r"""Parses Java properties files, as `java.util.Properties` does.

    >>> parse("# who\nsasl.mechanism = PLAIN\nsasl.username: al\\\n  ice")
    {'sasl.mechanism': 'PLAIN', 'sasl.username': 'alice'}

The meaning of the keys is defined in `command_config`.
"""

import re
from collections.abc import Iterator
from typing import Final

_SPACE: Final = " \t\f"
_KEY: Final = re.compile(r"((?:\\.|[^\\:= \t\f])*)[ \t\f]*[:=]?[ \t\f]*", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.)|$)", re.DOTALL)
_NAMED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse(text: str) -> dict[str, str]:
    """Return the values by key; the last one wins. Raise `ValueError` for an invalid escape."""
    parsed = {}
    for line in _lines(text):
        match = _KEY.match(line)
        assert match is not None, "an empty key matches any line"
        parsed[_unescape(match[1])] = _unescape(line[match.end() :])
    return parsed


def _lines(text: str) -> Iterator[str]:
    """Yield logical lines: without comments, and with continued lines joined."""
    parts: list[str] = []
    for line in re.split(r"\r\n|\r|\n", text):
        stripped = line.lstrip(_SPACE)
        if not parts and (not stripped or stripped[0] in "#!"):
            continue
        if _is_continued(stripped):
            parts.append(stripped[:-1])
            continue
        yield "".join(parts) + stripped
        parts = []
    if parts:
        yield "".join(parts)


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str) -> str:
    def replacement(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2] == "u":
            raise ValueError(r"\u must be followed by four hexadecimal digits")
        return _NAMED.get(match[2], match[2] or "")

    return _ESCAPE.sub(replacement, text)
