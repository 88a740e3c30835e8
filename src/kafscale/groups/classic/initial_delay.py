"""The initial rebalance delay: a group that is new gives its members time to come together.

Without it the first generation would have one member, and each that comes a moment later would
begin another (KIP-134). The delay begins again as long as newcomers arrive, but the first member
waits no longer than its rebalance timeout for the rest.
"""

from typing import Self

import msgspec


class InitialDelay(msgspec.Struct, gc=False):
    """How long to wait, and whether it was worth while."""

    step_ms: int
    limit_ms: int
    """The moment at which it ends in any case."""
    has_newcomer: bool = False
    """Whether somebody came since the delay last began."""

    @classmethod
    def begun(cls, step_ms: int, rebalance_timeout_ms: int, now_ms: int) -> Self:
        return cls(step_ms, now_ms + max(step_ms, rebalance_timeout_ms))

    def extended(self, now_ms: int) -> int | None:
        """When it ends next, as it is over now; None if it does not begin again.

        >>> delay = InitialDelay.begun(step_ms=3_000, rebalance_timeout_ms=5_000, now_ms=0)
        >>> delay.has_newcomer = True
        >>> delay.extended(3_000)
        5000
        >>> delay.extended(5_000) is None
        True
        """
        end_ms = min(now_ms + self.step_ms, self.limit_ms)
        if not self.has_newcomer or end_ms <= now_ms:
            return None
        self.has_newcomer = False
        return end_ms
