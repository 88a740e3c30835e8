"""`Leases`: the leases of an in-process store.

Invariant: a lease ends when the given clock reaches its deadline. A timer ends leases on time, and
every store operation calls `sweep` first, so that no operation sees keys of an ended lease. The
store deletes the keys.
"""

import asyncio
from collections.abc import Callable

Clock = Callable[[], int]
"""Returns monotonic milliseconds."""


class Leases:
    """Leases by id, with TTL and deadline."""

    def __init__(self, clock: Clock, end: Callable[[int], None]) -> None:
        self._clock = clock
        self._end = end
        self._last = 0
        self._leases: dict[int, tuple[int, int]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __contains__(self, lease: int) -> bool:
        return lease in self._leases

    def grant(self, ttl_ms: int) -> int:
        assert ttl_ms > 0, ttl_ms
        self._last += 1
        self._leases[self._last] = (ttl_ms, self._clock() + ttl_ms)
        self._schedule()
        return self._last

    def keep_alive(self, lease: int) -> bool:
        self.sweep()
        if lease not in self._leases:
            return False
        ttl_ms, _ = self._leases[lease]
        self._leases[lease] = (ttl_ms, self._clock() + ttl_ms)
        return True

    def revoke(self, lease: int) -> None:
        if self._leases.pop(lease, None):
            self._end(lease)

    def sweep(self) -> None:
        """End all leases whose deadline has passed."""
        now_ms = self._clock()
        expired = [
            lease for lease, (_, deadline_ms) in self._leases.items() if deadline_ms <= now_ms
        ]
        for lease in expired:
            self.revoke(lease)

    def close(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        self._leases.clear()

    def _schedule(self) -> None:
        """Set the timer to the next deadline; a renewed deadline is noticed when it fires."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._leases:
            deadline_ms = min(deadline_ms for _, deadline_ms in self._leases.values())
            delay_ms = max(1, deadline_ms - self._clock())
            self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.sweep()
        self._schedule()
