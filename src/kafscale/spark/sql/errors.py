"""Reduces Spark's errors about a query to one sentence.

Spark reports an error class in brackets, an SQLSTATE, the plan and Java stack traces. Only the
message and the position in the statement are kept.
"""

import logging
import re
from typing import TYPE_CHECKING, Final

from kafscale.errors import KafscaleError

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

_CLASS: Final = re.compile(r"^\s*\[[A-Z0-9_.]+\]\s*")
_STATE: Final = re.compile(r"\s*SQLSTATE: \w{5}.*", re.DOTALL)
_POSITION: Final = re.compile(r"line (?P<line>\d+),? (?P<unit>pos|position) (?P<number>\d+)")
_OURS: Final = re.compile(
    r"^kafscale\.errors(?:\.\w+)*\.(?P<kind>\w+Error): (?P<text>.*)$", re.MULTILINE
)
_NOT_FOUND: Final = frozenset({"TABLE_OR_VIEW_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE"})
_NAME: Final = re.compile(r"`((?:[^`]|``)*)`")


class QueryError(KafscaleError):
    """A statement is invalid or failed."""


def silence_query_logger() -> None:
    """Keep PySpark from also logging each query error with its stack trace."""
    logging.getLogger("SQLQueryContextLogger").disabled = True


def error_message(error: "PySparkException") -> str:
    """Return the message of an error for the author of the statement."""
    whole = str(error)
    if ours := _OURS.search(whole):
        return ours["text"].strip()
    message = error.getMessage() if error.getCondition() else whole
    message = _STATE.sub("", _CLASS.sub("", message or whole))
    text = " ".join(message.split())
    match = _POSITION.search(whole)
    if match is None:
        return text
    # Spark counts `pos` from 0, but `position` from 1.
    position = int(match["number"]) + (match["unit"] == "pos")
    return f"{text} (line {match['line']}, position {position})"


def missing_table(error: "PySparkException") -> list[str] | None:
    """Return the name parts of a table that does not exist; None for other errors."""
    if error.getCondition() not in _NOT_FOUND:
        return None
    parameters = error.getMessageParameters() or {}
    quoted = parameters.get("relationName") or parameters.get("identifier") or ""
    parts = [part.replace("``", "`") for part in _NAME.findall(quoted)]
    return parts[2:] if parts[:2] == ["spark_catalog", "default"] else parts
