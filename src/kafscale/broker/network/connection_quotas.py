"""`Door`: how many may come in: overall, from one address, and in a second.

The law: whoever is let in is counted until `leave`, from the moment they are accepted, encrypted or
not, known or not. Pure: the time is told, sockets are somebody else's.
"""

from collections.abc import Iterable, Mapping
from math import inf

from kafscale.errors import ConfigError


class Door:
    """Counts who is in."""

    def __init__(
        self,
        connections_max: int,
        *,
        per_host_max: int | None = None,
        per_host_overrides: Mapping[str, int] | None = None,
        rate_max: float | None = None,
    ) -> None:
        self._connections_max = connections_max
        self._per_host_max = inf if per_host_max is None else per_host_max
        self._per_host_overrides = dict(per_host_overrides or {})
        self._rate_max = rate_max
        self._tokens: float = rate_max or inf
        self._filled_at: float | None = None
        self._by_host: dict[str, int] = {}
        self.count = 0

    def enter(self, host: str) -> bool:
        """Whether somebody from this address may come in; if so, they are counted."""
        from_there = self._by_host.get(host, 0)
        if self.count >= self._connections_max:
            return False
        if from_there >= self._per_host_overrides.get(host, self._per_host_max):
            return False
        self._by_host[host] = from_there + 1
        self.count += 1
        return True

    def leave(self, host: str) -> None:
        assert self.count > 0, "nobody is in"
        self.count -= 1
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]

    def wait_seconds(self, now: float) -> float:
        """How long to let the next one wait outside; 0 if one may come now."""
        if self._rate_max is None:
            return 0.0
        if self._filled_at is not None:
            earned = (now - self._filled_at) * self._rate_max
            self._tokens = min(self._rate_max, self._tokens + earned)
        self._filled_at = now
        return max(0.0, (1 - self._tokens) / self._rate_max)

    def pay(self) -> None:
        """Note that somebody has come, let in or not."""
        self._tokens -= 1


def overrides(entries: Iterable[str]) -> dict[str, int]:
    """The limits of addresses that have one of their own.

    >>> overrides(["10.0.0.7:500", "::1:3"])
    {'10.0.0.7': 500, '::1': 3}
    """
    found = {}
    for entry in entries:
        host, _, count = entry.rpartition(":")
        if not host:
            raise ConfigError(f"network.maxConnectionsPerIpOverrides: {entry} names no address")
        found[host] = int(count)
    return found
