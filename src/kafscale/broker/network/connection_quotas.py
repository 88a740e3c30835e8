"""Limits on client connections: in total, per address, and per second.

Invariant: a connection is counted from accept until close, encrypted or not, authenticated or not.
This module is pure: callers pass the time and own the sockets.
"""

from collections.abc import Iterable, Mapping
from math import inf

from kafscale.aio.token_bucket import TokenBucket
from kafscale.errors import ConfigError


class ConnectionQuotas:
    """Counts connections; a token bucket limits how many are accepted per second."""

    def __init__(
        self,
        connections_max: int,
        *,
        per_host_max: int | None = None,
        per_host_overrides: Mapping[str, int] | None = None,
        rate_max: float | None = None,
    ) -> None:
        self._by_host: dict[str, int] = {}
        self.count = 0
        self._rate_max: float | None = None
        self._accepts: TokenBucket | None = None
        self.configure(
            connections_max,
            per_host_max=per_host_max,
            per_host_overrides=per_host_overrides,
            rate_max=rate_max,
        )

    def configure(
        self,
        connections_max: int,
        *,
        per_host_max: int | None = None,
        per_host_overrides: Mapping[str, int] | None = None,
        rate_max: float | None = None,
    ) -> None:
        """Set the limits; connections that exceed lower ones stay open."""
        self._connections_max = connections_max
        self._per_host_max = inf if per_host_max is None else per_host_max
        self._per_host_overrides = dict(per_host_overrides or {})
        if rate_max != self._rate_max:
            self._rate_max = rate_max
            self._accepts = None if rate_max is None else TokenBucket(rate_max)

    @property
    def is_full(self) -> bool:
        """Whether there is no place left, whatever the address."""
        return self.count >= self._connections_max

    def allows_host(self, host: str) -> bool:
        """Whether this address may have another connection, if there is a place."""
        limit = self._per_host_overrides.get(host, self._per_host_max)
        return self._by_host.get(host, 0) < limit

    def try_acquire(self, host: str) -> bool:
        """Count a connection from this address; False if a limit is reached."""
        if self.is_full or not self.allows_host(host):
            return False
        self._by_host[host] = self._by_host.get(host, 0) + 1
        self.count += 1
        return True

    def release(self, host: str) -> None:
        assert self.count > 0, "no connection is counted"
        self.count -= 1
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]

    def wait_seconds(self, now: float) -> float:
        """How long to wait before the next accept; 0 if one is allowed now."""
        return self._accepts.wait_seconds(1, now) if self._accepts else 0.0

    def consume_token(self, now: float) -> None:
        """Record an accept, whether or not `try_acquire` then allows the connection."""
        if self._accepts:
            self._accepts.consume(1, now)


def parse_overrides(entries: Iterable[str]) -> dict[str, int]:
    """The connection limits of single addresses, from `network.maxConnectionsPerIpOverrides`.

    >>> parse_overrides(["10.0.0.7:500", "::1:3"])
    {'10.0.0.7': 500, '::1': 3}
    """
    limits = {}
    for entry in entries:
        host, _, count = entry.rpartition(":")
        if not host:
            raise ConfigError(
                f"network.maxConnectionsPerIpOverrides: {entry!r} has no address;"
                " expected address:count"
            )
        limits[host] = int(count)
    return limits
