"""Time as groups see it: it stands still while members could not be heard or answered.

Sessions and rebalances are promises about how long a member may be silent. A process that was
stopped heard nobody. One whose store does not take its writes answers nobody, nor does one that
cannot prove that it may. What passes meanwhile counts against no member. The clock is that of the
world at the start, and runs by one that nobody sets; `skew_ms` leads back to the world's.
"""

from collections.abc import Callable
from typing import Final

GAP_MS_MAX: Final = 1_000
"""Who looks at the clock every `LOOK_SECONDS` and finds so much gone did not run meanwhile."""

LOOK_SECONDS: Final = 0.25


class GroupClock:
    """Milliseconds since 1970, less the time in which nothing could be expected of anybody."""

    def __init__(self, wall: Callable[[], int], steady: Callable[[], int]) -> None:
        self._wall = wall
        self._steady = steady
        self._last_ms = steady()
        self._ahead_ms = wall() - self._last_ms
        self._stopped_by: set[str] = set()

    def __call__(self) -> int:
        steady_ms = self._steady()
        gap_ms = steady_ms - self._last_ms
        self._last_ms = steady_ms
        if self._stopped_by or gap_ms > GAP_MS_MAX:
            self._ahead_ms -= gap_ms
        return steady_ms + self._ahead_ms

    @property
    def skew_ms(self) -> int:
        """How far the world is ahead."""
        return self._wall() - self()

    def stop(self, reason: str) -> None:
        """Stand still from now on, until there is no reason left."""
        self()
        self._stopped_by.add(reason)

    def go_on(self, reason: str) -> None:
        self()
        self._stopped_by.discard(reason)
