"""When the next snapshot is to be taken, and when the newest is too old. Pure.

The laws: without any snapshot one is due at once, and after that an interval from the newest one,
whoever took it. One that fails is tried again soon, then less and less soon, but never less often
than the interval says. A snapshot from the future, whose writer's clock was wrong, does not keep
others from being taken.
"""

from typing import Final

import msgspec

RETRY_MS_MIN: Final = 15_000
RETRY_MS_MAX: Final = 600_000
JITTER_MAX: Final = 0.3
"""The share by which a pause may be longer, so that clusters do not knock in step."""


class Failures(msgspec.Struct, frozen=True):
    """How often in a row no snapshot could be taken, and when that was last tried."""

    count: int = 0
    last_at_ms: int = 0
    reason: str = ""

    def another(self, now_ms: int, reason: str) -> "Failures":
        return Failures(self.count + 1, now_ms, reason)


def is_due(
    now_ms: int, newest_at_ms: int | None, interval_ms: int, failures: Failures, jitter: float
) -> bool:
    """Whether to take one now; `jitter` is between 0 and 1."""
    if newest_at_ms is not None and abs(now_ms - newest_at_ms) < interval_ms:
        return False
    return is_retry_due(now_ms, interval_ms, failures, jitter)


def is_retry_due(now_ms: int, interval_ms: int, failures: Failures, jitter: float) -> bool:
    """Whether the last failure, if there is one, is long enough ago."""
    return now_ms - failures.last_at_ms >= pause_ms(failures.count, interval_ms, jitter)


def pause_ms(failure_count: int, interval_ms: int, jitter: float) -> int:
    """How long to wait after so many failures in a row.

    >>> [pause_ms(count, 3_600_000, jitter=0) for count in (0, 1, 2, 3, 20, 2000)]
    [0, 15000, 30000, 60000, 600000, 600000]
    """
    assert 0 <= jitter <= 1, jitter
    if failure_count == 0:
        return 0
    # Beyond a few doublings the greatest pause is reached, and the power need not be reckoned.
    pause = RETRY_MS_MIN << min(failure_count - 1, 10)
    return min(int(min(pause, RETRY_MS_MAX) * (1 + JITTER_MAX * jitter)), interval_ms)


def is_stale(now_ms: int, newest_at_ms: int, stale_after_ms: int) -> bool:
    """Whether the newest snapshot is too old to rely on."""
    return now_ms - newest_at_ms > stale_after_ms
