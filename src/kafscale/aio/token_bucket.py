"""`TokenBucket`: a rate limit that may be overdrawn.

    bucket = TokenBucket(1_048_576)
    bucket.consume(3_000_000, later)   # 1.86: seconds until the balance is positive again.

Invariants: the bucket refills at its rate, up to the burst and at least one token, so that the
smallest rate admits something. Consuming more than the balance makes it negative; a client that
waits as long as it is asked to has used the rate and no more. The debt is bounded by the longest
wait. Time, in seconds, is passed in.
"""

from math import inf
from typing import Final

_ROUNDING: Final = 1e-9
"""Tokens that a balance may lack by rounding of floating-point numbers."""


class TokenBucket:
    """The balance of one rate."""

    __slots__ = ("_balance", "_burst_seconds", "_refilled_at", "_wait_seconds_max", "rate")

    def __init__(
        self, rate: float, *, burst_seconds: float = 1.0, wait_seconds_max: float = 10.0
    ) -> None:
        self._burst_seconds = burst_seconds
        self._wait_seconds_max = wait_seconds_max
        self.rate = rate
        """Tokens per second; may change at any time."""
        self._refilled_at = -inf  # The bucket is full when it is first used.
        self._balance = 0.0

    def consume(self, amount: float, now: float) -> float:
        """Consume tokens; return the seconds until the balance is positive."""
        self._refill(now)
        self._balance -= amount
        return self._debt_seconds()

    def try_consume(self, amount: float, now: float) -> float:
        """Consume tokens if there are enough and return 0, else the seconds until there are."""
        wait_seconds = self.wait_seconds(amount, now)
        if not wait_seconds:
            self._balance -= amount
        return min(wait_seconds, self._wait_seconds_max)

    def wait_seconds(self, amount: float, now: float) -> float:
        """Return the seconds until there are enough tokens; 0 if there are now."""
        self._refill(now)
        missing = amount - self._balance
        return missing / self.rate if missing > _ROUNDING else 0.0

    def debt_seconds(self, now: float) -> float:
        """Return the seconds until the balance is positive."""
        self._refill(now)
        return self._debt_seconds()

    def is_full(self, now: float) -> bool:
        """Return whether the bucket is unused, so that a new one would be equal."""
        self._refill(now)
        return self._balance == self.capacity

    @property
    def capacity(self) -> float:
        """The balance of an unused bucket."""
        return max(1.0, self.rate * self._burst_seconds)

    def _refill(self, now: float) -> None:
        balance = self._balance + (now - self._refilled_at) * self.rate
        self._balance = min(balance, self.capacity)
        self._refilled_at = now

    def _debt_seconds(self) -> float:
        if self._balance >= 0:
            return 0.0
        self._balance = max(self._balance, -self.rate * self._wait_seconds_max)
        return -self._balance / self.rate
