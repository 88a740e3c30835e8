"""The health of the object store, derived from recent requests.

Invariants: only requests of the last `window_ms` count. The state is the worse of those by mean
latency and by error rate. With few requests the store counts as healthy. Memory is one entry per
second.

The caller decides which results are errors (not a missing object or a cancelled call) and what to
reject while the store is unhealthy. A caller that rejects requests must send probes, and call
`clear` when they succeed instead of waiting until the errors leave the window.
"""

from collections import deque
from enum import Enum
from typing import Final

_BUCKET_MS: Final = 1000
_REQUESTS_MIN: Final = 5


class HealthState(Enum):
    """The store's health, from best to worst."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNAVAILABLE = "unavailable"


class _Second:
    """Totals of one second, or of the whole window."""

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
    """Totals of the requests in a sliding window."""

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
        """Forget all requests, because the store has recovered."""
        self._buckets: deque[_Second] = deque()
        self._total = _Second(0)

    def record(self, now_ms: int, latency_ms: float, *, failed: bool) -> None:
        self._expire(now_ms)
        second = now_ms // _BUCKET_MS
        # If the clock moves back, requests are added to the newest second.
        if not self._buckets or self._buckets[-1].second < second:
            self._buckets.append(_Second(second))
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
        """The share of failed requests; 0 without requests."""
        self._expire(now_ms)
        return self._total.failed_count / max(1, self._total.count)

    def latency_ms_mean(self, now_ms: int) -> float:
        self._expire(now_ms)
        return self._total.latency_ms_sum / max(1, self._total.count)

    def _expire(self, now_ms: int) -> None:
        """Drop the seconds that have left the window."""
        oldest = (now_ms - self._window_ms) // _BUCKET_MS
        while self._buckets and self._buckets[0].second <= oldest:
            old = self._buckets.popleft()
            self._total.add(-old.count, -old.failed_count, -old.latency_ms_sum)
        if not self._buckets:
            # Rounding errors of float sums would remain.
            self._total = _Second(0)
