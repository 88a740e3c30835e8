"""What went wrong in a task, on its way to the driver.

An exception itself would not get there: Spark makes pages of Java out of it. The law: what Kafscale
raised on purpose arrives with its class, its message and its attributes; anything else is a defect,
and arrives with where it came from.
"""

import re
import traceback
from itertools import takewhile
from typing import Final, Self

import msgspec

from kafscale.errors import KafscaleError

_LISTING: Final = re.compile(r"\s*(at |Traceback |Driver stacktrace|JVM stacktrace)")
_PREFIX: Final = re.compile(r"An error occurred while calling .*")
_COMPLAINT: Final = re.compile(r'(?:Exception in thread "main" )?(.*(?:Exception|Error|Invalid).*)')


class TaskFailure(msgspec.Struct, frozen=True):
    """An exception taken apart; it is pickled."""

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
        """The exception put together again, without what makes one from other arguments."""
        made = self.kind.__new__(self.kind, *self.arguments)
        vars(made).update(self.attributes)
        return made


def spark_reason(problem: Exception) -> str:
    """Why Spark gave up, on one line, from the pages that it prints: what precedes the code."""
    said = str(problem).partition("most recent failure: ")[2] or _PREFIX.sub("", str(problem))
    lines = takewhile(lambda line: not _LISTING.match(line), said.strip().splitlines())
    return " ".join(line.strip(" :") for line in lines) or type(problem).__name__


def launch_reason(printed: str) -> str:
    """Why Java did not even start Spark, from what it printed: its first complaint.

    >>> launch_reason("Invalid maximum heap size: -Xmx1x")
    'Invalid maximum heap size: -Xmx1x'
    """
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    complaints = (found[1] for line in lines if (found := _COMPLAINT.fullmatch(line)))
    return next(complaints, lines[-1] if lines else "it prints nothing")
