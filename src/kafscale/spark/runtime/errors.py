"""Transports errors of tasks to the driver, and extracts reasons from Spark's errors and output.

Spark turns an exception of a task into pages of Java stack traces. Invariant: an error of Kafscale
arrives with its class, message and attributes; any other exception is a defect and arrives as a
RuntimeError with its traceback.
"""

import logging
import re
import traceback
from itertools import takewhile
from typing import TYPE_CHECKING, Final, Self

import msgspec

from kafscale.errors import KafscaleError

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

_STACK_TRACE: Final = re.compile(r"\s*(at |Traceback |Driver stacktrace|JVM stacktrace)")
_PREFIX: Final = re.compile(r"An error occurred while calling .*")
_ERROR_LINE: Final = re.compile(
    r'(?:Exception in thread "main" )?(.*(?:Exception|Error|Invalid).*)'
)

_CLASS: Final = re.compile(r"^\s*\[[A-Z0-9_.]+\]\s*")
_STATE: Final = re.compile(r"\s*SQLSTATE: \w{5}.*", re.DOTALL)
_POSITION: Final = re.compile(r"line (?P<line>\d+),? (?P<unit>pos|position) (?P<number>\d+)")
_OURS: Final = re.compile(
    r"^kafscale\.errors(?:\.\w+)*\.(?P<kind>\w+Error): (?P<text>.*)$", re.MULTILINE
)
_NOT_FOUND: Final = frozenset({"TABLE_OR_VIEW_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE"})
_NAME: Final = re.compile(r"`((?:[^`]|``)*)`")


class TaskFailure(msgspec.Struct, frozen=True):
    """An exception in a form that can be pickled."""

    kind: type[Exception]
    arguments: tuple[object, ...]
    attributes: dict[str, object]

    @classmethod
    def of(cls, error: Exception) -> Self:
        if isinstance(error, KafscaleError):
            return cls(type(error), error.args, vars(error))
        trace = "".join(traceback.format_exception(error))
        return cls(RuntimeError, (f"a task failed:\n{trace}",), {})

    def error(self) -> Exception:
        """Rebuild the exception without calling its `__init__`, which may take other arguments."""
        error = self.kind.__new__(self.kind, *self.arguments)
        vars(error).update(self.attributes)
        return error


def spark_reason(error: Exception) -> str:
    """Return why Spark failed, on one line: its message up to the stack trace."""
    message = str(error).partition("most recent failure: ")[2] or _PREFIX.sub("", str(error))
    lines = takewhile(lambda line: not _STACK_TRACE.match(line), message.strip().splitlines())
    return " ".join(line.strip(" :") for line in lines) or type(error).__name__


def launch_reason(output: str) -> str:
    """Return why Java did not start Spark: the first error line of its output.

    >>> launch_reason("Invalid maximum heap size: -Xmx1x")
    'Invalid maximum heap size: -Xmx1x'
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = (match[1] for line in lines if (match := _ERROR_LINE.fullmatch(line)))
    return next(errors, lines[-1] if lines else "it printed nothing")


def silence_query_logger() -> None:
    """Keep PySpark from also logging each query error with its stack trace."""
    logging.getLogger("SQLQueryContextLogger").disabled = True


def error_message(error: "PySparkException") -> str:
    """Return the message of an error for the author of the statement.

    Spark reports an error class in brackets, an SQLSTATE, the plan and Java stack traces. Only the
    message and the position in the statement are kept.
    """
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
