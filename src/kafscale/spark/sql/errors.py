"""What Spark says about a query, as a sentence.

Spark tells what is wrong with a class in brackets, a state of the SQL standard, the plan, and pages
of Java. Of these, the message is kept, and where in the statement it points.
"""

import logging
import re
from typing import TYPE_CHECKING, Final

from kafscale.errors import KafscaleError

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

_CLASS: Final = re.compile(r"^\s*\[[A-Z0-9_.]+\]\s*")
_STATE: Final = re.compile(r"\s*SQLSTATE: \w{5}.*", re.DOTALL)
_PLACE: Final = re.compile(r"line (?P<line>\d+),? (?P<unit>pos|position) (?P<place>\d+)")
_OURS: Final = re.compile(
    r"^kafscale\.errors(?:\.\w+)*\.(?P<kind>\w+Error): (?P<text>.*)$", re.MULTILINE
)
_NOT_FOUND: Final = frozenset({"TABLE_OR_VIEW_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE"})
_NAME: Final = re.compile(r"`((?:[^`]|``)*)`")


class QueryError(KafscaleError):
    """A statement that cannot be run, or whose run came to nothing."""


def silence() -> None:
    """Keep PySpark from writing each error of a query to standard error as well, with its pages."""
    logging.getLogger("SQLQueryContextLogger").disabled = True


def sentence(error: "PySparkException") -> str:
    """What an error means to whoever wrote the statement."""
    whole = str(error)
    if ours := _OURS.search(whole):
        return ours["text"].strip()
    message = error.getMessage() if error.getCondition() else whole
    message = _STATE.sub("", _CLASS.sub("", message or whole))
    said = " ".join(message.split())
    found = _PLACE.search(whole)
    if found is None:
        return said
    # Where it says so shortly, Spark counts from 0.
    position = int(found["place"]) + (found["unit"] == "pos")
    return f"{said} (line {found['line']}, position {position})"


def missing_name(error: "PySparkException") -> list[str] | None:
    """The parts of the name of a table that there is not; None if it is something else."""
    if error.getCondition() not in _NOT_FOUND:
        return None
    named = error.getMessageParameters() or {}
    quoted = named.get("relationName") or named.get("identifier") or ""
    parts = [part.replace("``", "`") for part in _NAME.findall(quoted)]
    return parts[2:] if parts[:2] == ["spark_catalog", "default"] else parts
