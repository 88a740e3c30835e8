"""The clock of groups: it is paused while heartbeats cannot be received or answered.

Session and rebalance timeouts limit how long a member may be silent. A process that was suspended
received no heartbeats. A broker whose metadata store does not accept writes, or whose lease is not
valid, answers none. Such periods do not count against any member. The clock starts at wall-clock
time and follows the monotonic clock; `skew_ms` converts back to wall-clock time.
"""

from collections.abc import Callable
from typing import Final

GAP_MS_MAX: Final = 1_000
"""A gap between two polls (see `POLL_SECONDS`) above which the process was suspended."""

POLL_SECONDS: Final = 0.25


class PausableClock:
    """Wall-clock milliseconds, excluding periods in which heartbeats could not be processed."""

    def __init__(self, wall: Callable[[], int], monotonic: Callable[[], int]) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._last_ms = monotonic()
        self._ahead_ms = wall() - self._last_ms
        self._pause_reasons: set[str] = set()

    def __call__(self) -> int:
        steady_ms = self._monotonic()
        gap_ms = steady_ms - self._last_ms
        self._last_ms = steady_ms
        if self._pause_reasons or gap_ms > GAP_MS_MAX:
            self._ahead_ms -= gap_ms
        return steady_ms + self._ahead_ms

    @property
    def skew_ms(self) -> int:
        """How far the wall clock is ahead."""
        return self._wall() - self()

    def pause(self, reason: str) -> None:
        """Pause until no reason is left."""
        self()
        self._pause_reasons.add(reason)

    def resume(self, reason: str) -> None:
        self()
        self._pause_reasons.discard(reason)
