r"""Splits SQL text into statements, and recognizes `show tables`.

A statement ends with a semicolon outside of quotes and comments. Text may arrive line by line, as
in a shell; an unfinished statement is kept. Pure.

    >>> text = Statements()
    >>> text.add("select 1; select ';'"), text.is_open
    (['select 1'], True)
    >>> text.add("as semicolon; -- the end;"), text.is_open
    (["select ';'\nas semicolon"], False)
"""

import re
from typing import Final

_TOKEN: Final = re.compile(
    r"""
    (?P<comment>  --[^\n]* | /\*.*?(?:\*/|\Z) )
  | (?P<quoted>   '(?:[^'\\]|\\.)*(?:'|\Z) | "(?:[^"\\]|\\.)*(?:"|\Z) | `[^`]*(?:`|\Z) )
  | (?P<end>      ; )
  | (?P<other>    [^-/'"`;]+ | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_SHOW: Final = re.compile(
    r"show\s+(?:tables|topics)(?:\s+(?:like\s+)?(?P<quote>['\"])(?P<pattern>.*)(?P=quote))?",
    re.IGNORECASE | re.DOTALL,
)


class Statements:
    """Collects text and splits it into statements."""

    __slots__ = ("_text",)

    def __init__(self) -> None:
        self._text = ""

    @property
    def is_open(self) -> bool:
        """Whether there is an unfinished statement."""
        return bool(_without_comments(self._text))

    def add(self, line: str) -> list[str]:
        """Add one or more lines; return the statements that they finish."""
        statements, self._text = _split(f"{self._text}\n{line}" if self._text else line)
        if not self.is_open:
            self._text = ""
        return statements

    def finish(self) -> list[str]:
        """Return the rest as the last statement, which needs no semicolon."""
        rest, self._text = self._text.strip(), ""
        return [rest] if _without_comments(rest) else []

    def clear(self) -> None:
        self._text = ""


def split(text: str) -> list[str]:
    """Split a text into statements; the last one needs no semicolon."""
    statements = Statements()
    return [*statements.add(text), *statements.finish()]


def shown_topics(statement: str) -> str | None:
    """Return the pattern of a `show tables` statement; None for other statements.

    >>> shown_topics("show tables"), shown_topics("SHOW TABLES LIKE 'order*'"), shown_topics("x")
    ('*', 'order*', None)
    """
    match = _SHOW.fullmatch(_without_comments(statement))
    if match is None:
        return None
    return "*" if match["pattern"] is None else match["pattern"]


def matches(pattern: str, name: str) -> bool:
    """Whether a name matches a pattern of SHOW: `*` is any text, `|` means or.

    >>> matches("order*|users", "Orders"), matches("order.", "orders")
    (True, False)
    """
    options = (re.escape(one.strip()).replace(r"\*", ".*") for one in pattern.split("|"))
    return any(re.fullmatch(one, name, re.IGNORECASE) for one in options)


def _split(text: str) -> tuple[list[str], str]:
    statements: list[str] = []
    begin = 0
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "end":
            statements.append(text[begin : token.start()].strip())
            begin = token.end()
    return [one for one in statements if _without_comments(one)], text[begin:]


def _without_comments(text: str) -> str:
    kept = (token[0] for token in _TOKEN.finditer(text) if token.lastgroup != "comment")
    return "".join(kept).strip()
