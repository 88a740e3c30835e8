"""`RateLimitedLogger`: keeps a flood of strangers from becoming a flood of lines in the log."""

from collections.abc import Callable
from typing import Any, Final

from structlog.typing import FilteringBoundLogger

LINES_A_SECOND_MAX: Final = 10


class RateLimitedLogger:
    """Lets a few events of a kind through in a second, and counts the others."""

    __slots__ = ("_clock", "_left", "_second", "suppressed")

    def __init__(self, clock: Callable[[], int]) -> None:
        """`clock` tells the time in ms."""
        self._clock = clock
        self._second = -1
        self._left = 0
        self.suppressed = 0
        """How many were not told since the last that was."""

    def allow(self) -> bool:
        second = self._clock() // 1000
        if second != self._second:
            self._second = second
            self._left = LINES_A_SECOND_MAX
        if not self._left:
            self.suppressed += 1
            return False
        self._left -= 1
        return True

    def warn(self, log: FilteringBoundLogger, event: str, **facts: Any) -> None:
        """Tell an event, and how many were left out before it; or leave it out."""
        if self.allow():
            log.warning(event, **facts, suppressed=self.take_suppressed())

    def take_suppressed(self) -> int:
        """How many were left out before the one that is told now."""
        suppressed, self.suppressed = self.suppressed, 0
        return suppressed
