"""`Quotas`: which limits apply to a client, and what is left of them. Pure: time is passed in.

    quotas = Quotas(limits)
    for key, bucket in quotas.for_client("alice", "loader", now).items(): ...

Kafka's rules: of all matching limits of a type, the most specific applies. A limit is shared by all
clients of its entity: that of a user by all clients of the user, that of a client id by all users
with it. A default is a limit for each user or client id, not for all of them together. Clients
without a client id get the default.

The number of remembered clients is bounded; unused buckets are evicted first, which has no effect.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kafscale.aio.token_bucket import TokenBucket
from kafscale.metadata.access.model import QuotaEntity
from kafscale.security.quota.entities import DEFAULT
from kafscale.security.quota.types import QUOTA_TYPES

CLIENTS_MAX: Final = 10_000
"""How many clients are remembered, and how many buckets are kept on eviction."""

Limits = Mapping[QuotaEntity, Mapping[str, float]]
Buckets = Mapping[str, TokenBucket]
"""The token buckets of a client, by quota key."""

_Candidates = tuple[tuple[QuotaEntity, QuotaEntity], ...]
"""Matching entities, most specific first, each with the entity that shares the limit."""


class Quotas:
    """The limits of all clients of one broker."""

    def __init__(self, limits: Limits, clients_max: int = CLIENTS_MAX) -> None:
        """`limits` may change, if `invalidate` is called afterwards."""
        self._limits = limits
        self._clients_max = clients_max
        self._buckets_by_client: dict[tuple[str, ...], Buckets] = {}
        self._buckets: dict[tuple[str, QuotaEntity], TokenBucket] = {}

    @property
    def is_empty(self) -> bool:
        """True if there are no limits."""
        return not self._limits

    def invalidate(self) -> None:
        """Apply changed limits; used tokens stay used."""
        self._buckets_by_client.clear()
        if self.is_empty:
            self._buckets.clear()

    def for_client(self, user: str, client_id: str, now: float) -> Buckets:
        buckets = self._buckets_by_client.get((user, client_id))
        if buckets is None:
            buckets = self._resolve((user, client_id), candidates(user, client_id), now)
        return buckets

    def for_address(self, ip: str, now: float) -> Buckets:
        buckets = self._buckets_by_client.get((ip,))
        if buckets is None:
            own = QuotaEntity(ip=ip)
            buckets = self._resolve((ip,), ((own, own), (QuotaEntity(ip=DEFAULT), own)), now)
        return buckets

    def _resolve(self, name: tuple[str, ...], candidates: _Candidates, now: float) -> Buckets:
        if len(self._buckets_by_client) >= self._clients_max:
            self._evict(now)
        limits: dict[str, TokenBucket] = {}
        for entity, shared_by in candidates:
            for key, rate in self._limits.get(entity, {}).items():
                # Unknown keys of newer versions and rates of 0 limit nothing.
                if key in QUOTA_TYPES and key not in limits and rate > 0:
                    limits[key] = self._bucket(key, shared_by, rate)
        resolved = self._buckets_by_client[name] = MappingProxyType(limits)
        return resolved

    def _bucket(self, key: str, shared_by: QuotaEntity, rate: float) -> TokenBucket:
        bucket = self._buckets.get((key, shared_by))
        if bucket is None:
            kind = QUOTA_TYPES[key]
            bucket = self._buckets[key, shared_by] = TokenBucket(
                rate, burst_seconds=kind.burst_seconds, wait_seconds_max=kind.wait_seconds_max
            )
        bucket.rate = rate
        return bucket

    def _evict(self, now: float) -> None:
        self._buckets_by_client.clear()
        used = [each for each in self._buckets.items() if not each[1].is_full(now)]
        self._buckets = dict(used[-self._clients_max :])


def candidates(user: str, client_id: str) -> _Candidates:
    """The entities whose limits may apply to a request, in Kafka's order."""
    both = QuotaEntity(user=user, client_id=client_id)
    user_only = QuotaEntity(user=user)
    client_only = QuotaEntity(client_id=client_id)
    return (
        (both, both),
        (QuotaEntity(user=user, client_id=DEFAULT), both),
        (user_only, user_only),
        (QuotaEntity(user=DEFAULT, client_id=client_id), both),
        (QuotaEntity(user=DEFAULT, client_id=DEFAULT), both),
        (QuotaEntity(user=DEFAULT), user_only),
        (client_only, client_only),
        (QuotaEntity(client_id=DEFAULT), client_only),
    )
