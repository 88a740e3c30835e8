"""Transports errors of tasks to the driver, and extracts reasons from Spark's error output.

Spark turns an exception of a task into pages of Java stack traces. Invariant: an error of Kafscale
arrives with its class, message and attributes; any other exception is a defect and arrives as a
RuntimeError with its traceback.
"""

import re
import traceback
from itertools import takewhile
from typing import Final, Self

import msgspec

from kafscale.errors import KafscaleError

_STACK_TRACE: Final = re.compile(r"\s*(at |Traceback |Driver stacktrace|JVM stacktrace)")
_PREFIX: Final = re.compile(r"An error occurred while calling .*")
_ERROR_LINE: Final = re.compile(
    r'(?:Exception in thread "main" )?(.*(?:Exception|Error|Invalid).*)'
)


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
