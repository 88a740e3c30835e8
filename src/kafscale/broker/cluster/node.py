"""One broker's part in the cluster: what lies between the stores and the handlers, put together.

    join     a life begins: an epoch, a WAL stream, a registration; what is assigned is opened
    run      keep the lease, stand for controller, keep in step, and live on when a life was lost
    leave    hand everything over to others, as far as there are others and there is time

A single embedded broker is a cluster of one, and takes the same steps.
"""

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from kafscale.broker.cluster.controller.controller import Controller, ControllerSettings, Restorer
from kafscale.broker.cluster.drain import Draining
from kafscale.broker.cluster.legacy_assignments import adopt
from kafscale.broker.cluster.ownership import Ownership
from kafscale.broker.cluster.ownership_guards import OwnershipGuards
from kafscale.broker.cluster.registration import Membership
from kafscale.broker.cluster.sessions import Lives
from kafscale.broker.cluster.transfer import Handover
from kafscale.broker.group_coordinator.coordinator import Coordinator
from kafscale.broker.topics import Topics
from kafscale.errors import KafscaleError, OperatingError, StoreUnavailableError
from kafscale.metadata.cluster.cluster_cache import ClusterView
from kafscale.metadata.cluster.restore_marker import SETTLED, find_restored
from kafscale.metadata.store.base import MetadataStore
from kafscale.metadata.topics.catalog import Catalog
from kafscale.metadata.topics.config_validation import TopicDefaults
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.counters import ClusterStanding
from kafscale.storage.engine import StorageEngine
from kafscale.storage.wal.dead_stream_cleaner import Reaper
from kafscale.storage.wal.streams import Streams

log = get_logger(__name__)

RETRY_SECONDS: Final = 0.2
LINGER_SECONDS: Final = 1.0
"""How long another broker may need to learn that a topic is deleted, and stop writing."""


class ClusterNode:
    """A broker among others."""

    def __init__(
        self,
        metadata: MetadataStore,
        *,
        catalog: Catalog,
        view: ClusterView,
        guards: OwnershipGuards,
        membership: Membership,
        storage: StorageEngine,
        groups: Coordinator,
        streams: Streams,
        reaper: Reaper,
        restorer: Restorer,
        broker_id: int,
        cluster_id: str,
        defaults: TopicDefaults,
        settings: ControllerSettings,
        clock: Callable[[], int],
        random: Random,
    ) -> None:
        self._metadata = metadata
        self._catalog = catalog
        self._broker_id = broker_id
        self._clock = clock
        self._groups = groups
        self._storage = storage
        self.view = view
        self.membership = membership
        handover = Handover(metadata, view, storage, groups, clock=clock)
        self.ownership = Ownership(
            view, catalog, storage, groups, guards=guards, handover=handover, defaults=defaults
        )
        self.draining = Draining(view, membership, self.ownership)
        self.topics = Topics(
            catalog,
            led=self.ownership.led,
            delete_objects=self._delete_objects,
            linger_seconds=self._linger_seconds,
            clock=clock,
        )
        self.controller = Controller(
            metadata,
            view,
            catalog,
            streams,
            reaper,
            restorer=restorer,
            broker_id=broker_id,
            cluster_id=cluster_id,
            clock=clock,
            random=random,
            settings=settings,
        )
        self._lives = Lives(
            metadata,
            storage,
            membership,
            self.controller,
            self.ownership,
            broker_id=broker_id,
            clock=clock,
            random=random,
        )

    async def join(self) -> int:
        """Begin the first life; return its epoch."""
        await adopt(self._metadata, self._catalog, broker_id=self._broker_id, now_ms=self._clock())
        self.ownership.start()
        self._catalog.subscribe_deletions(self._see_to_deletions)
        self.controller.on_elected(self._see_to_deletions)
        return await self._lives.begin()

    async def settled(self, seconds: float) -> bool:
        """Wait until everything is served that should be here; false if that takes too long.

        Restored metadata are waited for as long as it takes: before, nobody knows what should be.
        """
        await self.membership.lineage.settled()
        await self._see_topics()
        return await self.ownership.settled(seconds)

    async def _see_topics(self) -> None:
        """Wait until topics are seen here that another may have just settled, if any ever did."""
        is_seen = False
        while not is_seen:
            try:
                if await self._metadata.get(SETTLED):
                    await self._catalog.current()
                is_seen = True
            except OperatingError as error:
                log.warning("topics not seen yet", reason=str(error))
                await asyncio.sleep(RETRY_SECONDS)

    async def run(self) -> None:
        """Take part; cancel it to stop."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._lives.run())
            group.create_task(self.ownership.run())
            group.create_task(self.controller.run())

    async def leave(self, seconds: float) -> None:
        """Hand over what there is, if there is anybody to take it."""
        try:
            async with asyncio.timeout(seconds):
                _, pending = await self.draining.drain(None, seconds)
        except (KafscaleError, TimeoutError) as error:
            log.warning("nothing handed over", reason=str(error) or "no answer")
        else:
            if pending and len(self.view.brokers) > 1:
                log.warning("not everything handed over", left=len(pending))

    async def close(self) -> None:
        """Be gone for the others."""
        self.controller.end()
        await self.topics.close()
        await self.membership.leave()

    def problems(self) -> Mapping[str, str]:
        """What stands in the way of serving clients; nothing, at best."""
        if not self.membership.is_proven:
            return {"cluster": "the metadata store has not confirmed this broker's lease"}
        if not self.membership.lineage.is_settled:
            return {"cluster": "the metadata were restored, and are not settled with the bucket"}
        return {}

    def standing(self) -> ClusterStanding:
        """Where this broker stands, in numbers."""
        return ClusterStanding(
            brokers=len(self.view.brokers),
            is_controller=self.controller.is_controller,
            is_proven=self.membership.is_proven,
            partitions=len(self._storage.logs),
            shards=len(self._groups.shards),
        )

    def _see_to_deletions(self) -> None:
        if self.controller.is_governing:
            self.topics.finish_deletions()

    async def _delete_objects(self, topic: str) -> int:
        """Remove the objects of a deleted topic, unless the deletion may be of a lost past."""
        if await find_restored(self._metadata):
            raise StoreUnavailableError("the metadata were restored, and are not settled yet")
        return await self.ownership.delete_objects(topic)

    def _linger_seconds(self) -> float:
        return LINGER_SECONDS if len(self.view.brokers) > 1 else 0.0
