"""How well the object store is, judged by its latest answers.

The laws: only requests of the last `window_ms` count; a state is as bad as the worse of the average
latency and the share of failures; a handful of requests says nothing. Memory is one bucket for each
second, however many requests there are.

What counts as a failure (not a missing object, not a cancelled call), and what is refused while the
store is unwell, is left to the caller. So is recovery: whoever turns requests away sends probes
instead, and calls `clear` once they succeed, rather than wait until the failures are out of sight.
"""

from collections import deque
from enum import Enum
from typing import Final

_BUCKET_MS: Final = 1000
_REQUESTS_MIN: Final = 5


class HealthState(Enum):
    """The store's health, from good to bad."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNAVAILABLE = "unavailable"


class _Bucket:
    """The requests of one second, or of all of them."""

    __slots__ = ("count", "failed_count", "latency_ms_sum", "second")

    def __init__(self, second: int) -> None:
        self.second = second
        self.count = 0
        self.failed_count = 0
        self.latency_ms_sum = 0.0

    def add(self, count: int, failed_count: int, latency_ms_sum: float) -> None:
        self.count += count
        self.failed_count += failed_count
        self.latency_ms_sum += latency_ms_sum


class HealthWindow:
    """The requests of the last while, summed up."""

    __slots__ = (
        "_buckets",
        "_error_rate_crit",
        "_error_rate_warn",
        "_latency_crit_ms",
        "_latency_warn_ms",
        "_requests_min",
        "_total",
        "_window_ms",
    )

    def __init__(
        self,
        *,
        window_ms: int,
        latency_warn_ms: float,
        latency_crit_ms: float,
        error_rate_warn: float,
        error_rate_crit: float,
        requests_min: int = _REQUESTS_MIN,
    ) -> None:
        """With fewer than `requests_min` requests in the window, the store counts as healthy."""
        self._window_ms = window_ms
        self._latency_warn_ms = latency_warn_ms
        self._latency_crit_ms = latency_crit_ms
        self._error_rate_warn = error_rate_warn
        self._error_rate_crit = error_rate_crit
        self._requests_min = requests_min
        self.clear()

    def clear(self) -> None:
        """Forget everything: the store is given a new start."""
        self._buckets: deque[_Bucket] = deque()
        self._total = _Bucket(0)

    def record(self, now_ms: int, latency_ms: float, *, failed: bool) -> None:
        self._expire(now_ms)
        second = now_ms // _BUCKET_MS
        # A clock that goes back finds its requests in the newest bucket.
        if not self._buckets or self._buckets[-1].second < second:
            self._buckets.append(_Bucket(second))
        self._buckets[-1].add(1, int(failed), latency_ms)
        self._total.add(1, int(failed), latency_ms)

    def state(self, now_ms: int) -> HealthState:
        latency_ms = self.latency_ms_mean(now_ms)
        error_rate = self.error_rate(now_ms)
        if self._total.count < self._requests_min:
            return HealthState.HEALTHY
        if latency_ms >= self._latency_crit_ms or error_rate >= self._error_rate_crit:
            return HealthState.UNAVAILABLE
        if latency_ms >= self._latency_warn_ms or error_rate >= self._error_rate_warn:
            return HealthState.DEGRADED
        return HealthState.HEALTHY

    def error_rate(self, now_ms: int) -> float:
        """The share of requests that failed; 0 if there were none."""
        self._expire(now_ms)
        return self._total.failed_count / max(1, self._total.count)

    def latency_ms_mean(self, now_ms: int) -> float:
        self._expire(now_ms)
        return self._total.latency_ms_sum / max(1, self._total.count)

    def _expire(self, now_ms: int) -> None:
        """Drop the seconds that have left the window, to the precision of a bucket."""
        oldest = (now_ms - self._window_ms) // _BUCKET_MS
        while self._buckets and self._buckets[0].second <= oldest:
            old = self._buckets.popleft()
            self._total.add(-old.count, -old.failed_count, -old.latency_ms_sum)
        if not self._buckets:
            # Sums of fractions do not come back to exactly nothing by themselves.
            self._total = _Bucket(0)
