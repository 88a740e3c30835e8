"""Draining: a broker gets rid of some of what it owns, or of everything because it leaves.

The law: nothing is given away without somebody to take it. Whoever leaves says so in its
registration, and the controller names new owners; who gets rid of single partitions names them
itself, those that have least. How a partition is handed over is said in `handover`.
"""

from collections import Counter
from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from kafscale.broker.cluster.claims import Claims, Place
from kafscale.broker.cluster.membership import Membership
from kafscale.broker.cluster.ownership import Ownership
from kafscale.errors import FencedError
from kafscale.metadata.cluster_encoding import encode_assignment
from kafscale.metadata.cluster_view import ClusterView
from kafscale.metadata.model import BrokerInfo
from kafscale.metadata.store import MetadataStore, Put

TRIES_MAX: Final = 10
"""How often an assignment may change before we give up asking for another owner."""


class Draining:
    """The ways of this broker to have less."""

    def __init__(
        self, store: MetadataStore, view: ClusterView, claims: Claims, membership: Membership,
        ownership: Ownership,
    ) -> None:  # fmt: skip
        self._store = store
        self._view = view
        self._claims = claims
        self._membership = membership
        self._ownership = ownership

    async def drain(
        self, partitions: Collection[Place] | None, deadline_seconds: float
    ) -> tuple[Collection[Place], Collection[Place]]:
        """Hand over these, or everything for good; what is gone, and what is not in time."""
        places = list(self._ownership.served) if partitions is None else list(partitions)
        if self._others():
            if partitions is None:
                await self._membership.announce_drain()
            else:
                for place in places:
                    await self._name_another(place)
            await self._ownership.gone(places, deadline_seconds)
        pending = [place for place in places if place in self._ownership.served]
        return [place for place in places if place not in pending], pending

    def _others(self) -> list[BrokerInfo]:
        ours = self._membership.registration
        return [
            broker for broker in self._view.brokers.values()
            if not broker.is_draining and ours is not None and broker.id != ours.id
        ]  # fmt: skip

    async def _name_another(self, place: Place) -> None:
        loads = Counter(
            assignment.broker_id
            for topic in self._view.assigned_topics()
            for assignment in self._view.assignments(topic).values()
        )
        target = min(self._others(), key=lambda broker: (loads[broker.id], broker.id))
        for _ in range(TRIES_MAX):
            claim = self._claims.get(place)
            if claim is None or claim.assignment.moving_to is not None:
                return
            moving = replace(claim.assignment, moving_to=target.id)
            done = await self._store.commit(
                [claim.compare], [Put(claim.key, encode_assignment(moving))]
            )
            if done.succeeded:
                return
            try:
                await claim.renew()
            except FencedError:
                return
