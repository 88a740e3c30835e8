"""The initial rebalance delay: a new group gives its members time to join (KIP-134).

Without it the first generation would have one member, and each later one would start another. The
delay starts again while new members arrive, but not beyond the first member's rebalance timeout.
"""

from typing import Self

import msgspec


class InitialDelay(msgspec.Struct, gc=False):
    """The delay of a new group."""

    step_ms: int
    limit_ms: int
    """When it ends in any case."""
    has_new_member: bool = False
    """Whether a member has joined since the delay last started."""

    @classmethod
    def start(cls, step_ms: int, rebalance_timeout_ms: int, now_ms: int) -> Self:
        return cls(step_ms, now_ms + max(step_ms, rebalance_timeout_ms))

    def extend(self, now_ms: int) -> int | None:
        """The next end of a delay that is over now; None if it does not start again.

        >>> delay = InitialDelay.start(step_ms=3_000, rebalance_timeout_ms=5_000, now_ms=0)
        >>> delay.has_new_member = True
        >>> delay.extend(3_000)
        5000
        >>> delay.extend(5_000) is None
        True
        """
        end_ms = min(now_ms + self.step_ms, self.limit_ms)
        if not self.has_new_member or end_ms <= now_ms:
            return None
        self.has_new_member = False
        return end_ms
