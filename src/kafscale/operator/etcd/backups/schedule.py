"""When the next snapshot is due, and when the newest is stale. Pure.

Invariants: the first snapshot is due at once, later ones an interval after the newest, whichever
process took it. A failed attempt is retried with exponential backoff, but at least once per
interval. A snapshot from the future, written with a wrong clock, does not block new ones.
"""

from typing import Final

import msgspec

RETRY_MS_MIN: Final = 15_000
RETRY_MS_MAX: Final = 600_000
JITTER_MAX: Final = 0.3
"""The share by which a delay may be longer, so that clusters do not retry in step."""


class Failures(msgspec.Struct, frozen=True):
    """Consecutive failures, and the time of the last one."""

    count: int = 0
    last_at_ms: int = 0
    reason: str = ""

    def another(self, now_ms: int, reason: str) -> "Failures":
        return Failures(self.count + 1, now_ms, reason)


def is_due(
    now_ms: int, newest_at_ms: int | None, interval_ms: int, failures: Failures, jitter: float
) -> bool:
    """Whether to take a snapshot now; `jitter` is between 0 and 1."""
    if newest_at_ms is not None and abs(now_ms - newest_at_ms) < interval_ms:
        return False
    return is_retry_due(now_ms, interval_ms, failures, jitter)


def is_retry_due(now_ms: int, interval_ms: int, failures: Failures, jitter: float) -> bool:
    """Whether the backoff after the last failure has passed."""
    return now_ms - failures.last_at_ms >= backoff_ms(failures.count, interval_ms, jitter)


def backoff_ms(failure_count: int, interval_ms: int, jitter: float) -> int:
    """The delay after consecutive failures.

    >>> [backoff_ms(count, 3_600_000, jitter=0) for count in (0, 1, 2, 3, 20, 2000)]
    [0, 15000, 30000, 60000, 600000, 600000]
    """
    assert 0 <= jitter <= 1, jitter
    if failure_count == 0:
        return 0
    # The maximum is reached after a few doublings; do not compute huge powers.
    delay_ms = RETRY_MS_MIN << min(failure_count - 1, 10)
    return min(int(min(delay_ms, RETRY_MS_MAX) * (1 + JITTER_MAX * jitter)), interval_ms)


def is_stale(now_ms: int, newest_at_ms: int, stale_after_ms: int) -> bool:
    """Whether the newest snapshot is too old to rely on."""
    return now_ms - newest_at_ms > stale_after_ms
