"""How long the answer to a failed login is held back: longer with every failure from an address.

The law: what is remembered is bounded, and forgotten after `FORGET_MS` without a failure. A login
that succeeds is never held back, so that who shares an address with a guesser still gets in.
"""

from typing import Final

HOSTS_COUNT_MAX: Final = 10_000
FORGET_MS: Final = 10 * 60 * 1000


class LoginBackoff:
    """The failures of late, by address. Pure: the time is told."""

    def __init__(self, delay_ms: int, delay_ms_max: int) -> None:
        self._delay_ms = delay_ms
        self._delay_ms_max = delay_ms_max
        self._failures: dict[str, tuple[int, int]] = {}  # How many, and when the last one was.

    def failed(self, host: str, now_ms: int) -> int:
        """Note a failure: how long to hold its answer back, in ms."""
        count, last_ms = self._failures.pop(host, (0, now_ms))
        if now_ms - last_ms > FORGET_MS:
            count = 0
        if len(self._failures) >= HOSTS_COUNT_MAX:
            del self._failures[next(iter(self._failures))]  # Of all, it has been quiet for longest.
        self._failures[host] = (count + 1, now_ms)
        return min(self._delay_ms << min(count, 20), self._delay_ms_max)
