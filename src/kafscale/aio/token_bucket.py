"""`Bucket`: a rate that somebody may use, and may overdraw.

    bucket = Bucket(KINDS["producer_byte_rate"], 1_048_576, now)
    bucket.spend(3_000_000, later)     # 1.86: so many seconds until the debt is repaid.

The laws: it fills by its rate, up to what may be used at once, and never less than one, so that the
smallest rate lets something pass. Who spends what is not there goes into debt; who then waits as
they are told has used the rate, and no more. A debt of more than the longest wait is forgotten:
nobody waits longer than that after they have stopped. Time, in seconds, is passed in.
"""

from kafscale.security.quota.types import Kind


class Bucket:
    """What is left of a rate."""

    __slots__ = ("_filled_at", "_kind", "_level", "rate")

    def __init__(self, kind: Kind, rate: float, now: float) -> None:
        self._kind = kind
        self.rate = rate
        """So much a second; it may change at any time."""
        self._filled_at = now
        self._level = self._capacity

    def spend(self, amount: float, now: float) -> float:
        """Use so much; how many seconds to wait until it is paid for."""
        self._refill(now)
        self._level -= amount
        return self._debt_seconds()

    def take(self, amount: float, now: float) -> float:
        """Use so much if it is there; if not, in how many seconds it is."""
        self._refill(now)
        missing = amount - self._level
        if missing <= 0:
            self._level -= amount
            return 0.0
        return min(missing / self.rate, self._kind.wait_seconds_max)

    def debt_seconds(self, now: float) -> float:
        """How many seconds to wait until all is paid for."""
        self._refill(now)
        return self._debt_seconds()

    def is_full(self, now: float) -> bool:
        """Whether nothing is used, so that a new one would be the same."""
        self._refill(now)
        return self._level == self._capacity

    @property
    def _capacity(self) -> float:
        return max(1.0, self.rate * self._kind.burst_seconds)

    def _refill(self, now: float) -> None:
        level = self._level + (now - self._filled_at) * self.rate
        self._level = min(level, self._capacity)
        self._filled_at = now

    def _debt_seconds(self) -> float:
        if self._level >= 0:
            return 0.0
        self._level = max(self._level, -self.rate * self._kind.wait_seconds_max)
        return -self._level / self.rate
