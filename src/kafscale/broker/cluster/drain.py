"""Draining: a broker gets rid of some of what it owns, or of everything because it leaves.

The law: nothing is given away without somebody to take it. Whoever leaves says so in its
registration, and the controller names new owners; single partitions go to the broker that has
least, and the controller may level that out again. How it is done is said in `handover`.
"""

import asyncio
from collections import Counter
from collections.abc import Collection
from typing import Final

from kafscale.broker.cluster.controller.plan.planner import Place
from kafscale.broker.cluster.ownership import Ownership
from kafscale.broker.cluster.registration import Membership
from kafscale.metadata.cluster.cluster_cache import ClusterView
from kafscale.metadata.schema.model import BrokerInfo

LOOK_SECONDS: Final = 0.2
"""How often it is made sure that there is somebody to take what is given away."""


class Draining:
    """The ways of this broker to have less."""

    def __init__(self, view: ClusterView, membership: Membership, ownership: Ownership) -> None:
        self._view = view
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
                target_id = self._who_has_least()
                for place in places:
                    self._ownership.move(place, target_id)
            await self._gone(places, deadline_seconds)
        pending = [place for place in places if place in self._ownership.served]
        return [place for place in places if place not in pending], pending

    async def _gone(self, places: Collection[Place], deadline_seconds: float) -> None:
        """Wait until they are gone, or until nobody is left to take them: all may leave at once."""
        waiting = asyncio.ensure_future(self._ownership.gone(places, deadline_seconds))
        try:
            while not waiting.done() and self._others():
                await asyncio.wait({waiting}, timeout=LOOK_SECONDS)
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    def _others(self) -> list[BrokerInfo]:
        ours = self._membership.registration
        return [
            broker
            for broker in self._view.brokers.values()
            if not broker.is_draining and ours is not None and broker.id != ours.id
        ]

    def _who_has_least(self) -> int:
        loads = Counter(assignment.broker_id for assignment in self._view.every_assignment())
        return min(self._others(), key=lambda broker: (loads[broker.id], broker.id)).id
