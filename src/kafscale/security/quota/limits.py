"""`Quotas`: which limits hold for whom, and what is left of them.

    quotas = Quotas(rules)
    for key, bucket in quotas.for_client("alice", "loader", now).items(): ...

The laws, which are Kafka's: of all limits of a kind that could be meant, the most specific holds. A
limit is shared by what its entity tells apart: that of a user by all clients of the user, that of a
client id by all users with it; a default is a limit for each that it stands for, not for all of
them together. Client ids that are not given are as good as any: the default holds for them.

What is remembered is bounded: when too many are known, those are forgotten first who have used
nothing, which changes nothing for them. Pure: time is passed in.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kafscale.aio.token_bucket import TokenBucket
from kafscale.metadata.access.model import QuotaEntity
from kafscale.security.quota.entities import DEFAULT
from kafscale.security.quota.types import QUOTA_TYPES

CLIENTS_MAX: Final = 10_000
"""How many clients are known at a time, and how many buckets are kept when there are more."""

Limits = Mapping[QuotaEntity, Mapping[str, float]]
Buckets = Mapping[str, TokenBucket]
"""What is left for somebody, by the key of what is limited."""

_Candidates = tuple[tuple[QuotaEntity, QuotaEntity], ...]
"""Entities whose limits could be meant, the most specific first; and by whom each is shared."""


class Quotas:
    """The limits of all clients of one broker."""

    def __init__(self, limits: Limits, clients_max: int = CLIENTS_MAX) -> None:
        """`rules` may change under our eyes, if `changed` is called after that."""
        self._limits = limits
        self._clients_max = clients_max
        self._buckets_by_client: dict[tuple[str, ...], Buckets] = {}
        self._buckets: dict[tuple[str, QuotaEntity], TokenBucket] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nobody is limited."""
        return not self._limits

    def invalidate(self) -> None:
        """Look at the rules again; what was used stays used."""
        self._buckets_by_client.clear()
        if self.is_empty:
            self._buckets.clear()

    def for_client(self, user: str, client_id: str, now: float) -> Buckets:
        """What is left for a client of a user."""
        found = self._buckets_by_client.get((user, client_id))
        if found is None:
            found = self._resolve((user, client_id), candidates(user, client_id), now)
        return found

    def for_address(self, ip: str, now: float) -> Buckets:
        """What is left for an address."""
        found = self._buckets_by_client.get((ip,))
        if found is None:
            own = QuotaEntity(ip=ip)
            found = self._resolve((ip,), ((own, own), (QuotaEntity(ip=DEFAULT), own)), now)
        return found

    def _resolve(self, name: tuple[str, ...], tried: _Candidates, now: float) -> Buckets:
        if len(self._buckets_by_client) >= self._clients_max:
            self._evict(now)
        limits: dict[str, TokenBucket] = {}
        for entity, shared_by in tried:
            for key, rate in self._limits.get(entity, {}).items():
                # A key of a newer version than ours limits nothing here, nor does a rate of 0.
                if key in QUOTA_TYPES and key not in limits and rate > 0:
                    limits[key] = self._bucket(key, shared_by, rate, now)
        found = self._buckets_by_client[name] = MappingProxyType(limits)
        return found

    def _bucket(self, key: str, shared_by: QuotaEntity, rate: float, now: float) -> TokenBucket:
        bucket = self._buckets.get((key, shared_by))
        if bucket is None:
            kind = QUOTA_TYPES[key]
            bucket = self._buckets[key, shared_by] = TokenBucket(
                rate, now, burst_seconds=kind.burst_seconds, wait_seconds_max=kind.wait_seconds_max
            )
        bucket.rate = rate
        return bucket

    def _evict(self, now: float) -> None:
        self._buckets_by_client.clear()
        used = [each for each in self._buckets.items() if not each[1].is_full(now)]
        self._buckets = dict(used[-self._clients_max :])


def candidates(user: str, client_id: str) -> _Candidates:
    """Whose limits could be meant by a request, in Kafka's order."""
    both = QuotaEntity(user=user, client_id=client_id)
    alone = QuotaEntity(user=user)
    anybodys = QuotaEntity(client_id=client_id)
    return (
        (both, both),
        (QuotaEntity(user=user, client_id=DEFAULT), both),
        (alone, alone),
        (QuotaEntity(user=DEFAULT, client_id=client_id), both),
        (QuotaEntity(user=DEFAULT, client_id=DEFAULT), both),
        (QuotaEntity(user=DEFAULT), alone),
        (anybodys, anybodys),
        (QuotaEntity(client_id=DEFAULT), anybodys),
    )
