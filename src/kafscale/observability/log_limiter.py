"""`RateLimitedLogger`: limits repeated log events, such as those that clients can cause."""

from collections.abc import Callable
from typing import Any, Final

from structlog.typing import FilteringBoundLogger

LINES_PER_SECOND_MAX: Final = 10


class RateLimitedLogger:
    """Allows a few events per second, and counts the suppressed ones."""

    __slots__ = ("_clock", "_remaining", "_second", "suppressed")

    def __init__(self, clock: Callable[[], int]) -> None:
        """`clock` returns milliseconds."""
        self._clock = clock
        self._second = -1
        self._remaining = 0
        self.suppressed = 0
        """The number of events suppressed since the last one that was logged."""

    def allow(self) -> bool:
        second = self._clock() // 1000
        if second != self._second:
            self._second = second
            self._remaining = LINES_PER_SECOND_MAX
        if not self._remaining:
            self.suppressed += 1
            return False
        self._remaining -= 1
        return True

    def warn(self, log: FilteringBoundLogger, event: str, **fields: Any) -> None:
        """Log an event with the number of suppressed ones before it, or suppress it."""
        if self.allow():
            log.warning(event, **fields, suppressed=self.take_suppressed())

    def take_suppressed(self) -> int:
        """Return and reset the number of suppressed events."""
        suppressed, self.suppressed = self.suppressed, 0
        return suppressed
