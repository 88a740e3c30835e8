r"""SQL as people type it: where a statement ends, and which are not for Spark.

A statement ends with a semicolon that stands neither in quotes nor in a comment. The text may come
line by line, as it does in a shell, so that what was not ended is kept. Pure.

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
    """Text that becomes statements as it grows."""

    __slots__ = ("_text",)

    def __init__(self) -> None:
        self._text = ""

    @property
    def is_open(self) -> bool:
        """Whether there is something that was not ended yet."""
        return bool(_without_comments(self._text))

    def add(self, line: str) -> list[str]:
        """Take a line, or many; the statements that it ends."""
        found, self._text = _split(f"{self._text}\n{line}" if self._text else line)
        if not self.is_open:
            self._text = ""
        return found

    def finish(self) -> list[str]:
        """What is left, as the last statement needs no semicolon."""
        rest, self._text = self._text.strip(), ""
        return [rest] if _without_comments(rest) else []

    def clear(self) -> None:
        self._text = ""


def split(text: str) -> list[str]:
    """The statements of a text, which the end of the text ends, too."""
    statements = Statements()
    return [*statements.add(text), *statements.finish()]


def shown_topics(statement: str) -> str | None:
    """The pattern of a statement that asks which topics there are; None if it asks something else.

    >>> shown_topics("show tables"), shown_topics("SHOW TABLES LIKE 'order*'"), shown_topics("x")
    ('*', 'order*', None)
    """
    found = _SHOW.fullmatch(_without_comments(statement))
    if found is None:
        return None
    return "*" if found["pattern"] is None else found["pattern"]


def matches(pattern: str, name: str) -> bool:
    """Whether a name is meant by a pattern of SHOW: * is anything, | is or.

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
