"""The leases of a store of this process: who holds one until when.

The law: a lease is over when the clock that was passed in says so, not when somebody notices. A
timer of the event loop ends leases on time; every operation of a store sweeps first as well, so
that none ever sees the keys of a lease that is over. What ending means for keys is the store's.
"""

import asyncio
from collections.abc import Callable

Clock = Callable[[], int]
"""Milliseconds that only ever grow."""


class Leases:
    """Leases by id, each with its time to live and its deadline."""

    def __init__(self, clock: Clock, end: Callable[[int], None]) -> None:
        self._clock = clock
        self._end = end
        self._last = 0
        self._held: dict[int, tuple[int, int]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __contains__(self, lease: int) -> bool:
        return lease in self._held

    def grant(self, ttl_ms: int) -> int:
        assert ttl_ms > 0, ttl_ms
        self._last += 1
        self._held[self._last] = (ttl_ms, self._clock() + ttl_ms)
        self._wind()
        return self._last

    def keep_alive(self, lease: int) -> bool:
        self.sweep()
        if lease not in self._held:
            return False
        ttl_ms, _ = self._held[lease]
        self._held[lease] = (ttl_ms, self._clock() + ttl_ms)
        return True

    def revoke(self, lease: int) -> None:
        if self._held.pop(lease, None):
            self._end(lease)

    def sweep(self) -> None:
        """End the leases whose time is over."""
        now_ms = self._clock()
        over = [lease for lease, (_, deadline_ms) in self._held.items() if deadline_ms <= now_ms]
        for lease in over:
            self.revoke(lease)

    def close(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        self._held.clear()

    def _wind(self) -> None:
        """Set the timer to the next deadline; one that has moved on is seen when it rings."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._held:
            deadline_ms = min(deadline_ms for _, deadline_ms in self._held.values())
            delay_ms = max(1, deadline_ms - self._clock())
            self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self.sweep()
        self._wind()
