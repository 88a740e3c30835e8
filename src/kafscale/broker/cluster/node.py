"""One broker of a cluster: connects the stores, the storage engine and the coordinator.

    join     start a broker session: epoch, WAL stream, registration; open what is assigned
    run      renew the lease, campaign for controller, follow the assignments, rejoin when fenced
    leave    transfer everything to other brokers, if there are any and time allows

A single embedded broker is a cluster of one, and takes the same steps.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random
from typing import Final

from kafscale.broker.cluster.closed_topics import ClosedTopics
from kafscale.broker.cluster.controller.controller import Controller, ControllerSettings, Restorer
from kafscale.broker.cluster.drain import Drainer
from kafscale.broker.cluster.ownership import Ownership
from kafscale.broker.cluster.partition_state_store import PartitionStateStore
from kafscale.broker.cluster.registration import Registration
from kafscale.broker.cluster.sessions import BrokerSessions
from kafscale.broker.cluster.transfer import OwnershipTransfer
from kafscale.broker.shards.shards import Shards
from kafscale.broker.topics import Topics
from kafscale.errors import KafscaleError, NotOwnerError, OperatingError, StoreUnavailableError
from kafscale.metadata.cluster import id_allocator
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.cluster.ownership_guard import OwnershipGuards
from kafscale.metadata.cluster.restore_marker import COMPLETED_KEY, find_pending_restore
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment
from kafscale.metadata.schema.model import Assignment
from kafscale.metadata.store.base import OPERATIONS_MAX, MetadataStore, Put, absent
from kafscale.metadata.topics.config_validation import TopicDefaults
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.counters import ClusterStatus
from kafscale.storage.engine import StorageEngine
from kafscale.storage.wal.dead_stream_cleaner import DeadStreamCleaner
from kafscale.storage.wal.streams import Streams

logger = get_logger(__name__)

RETRY_SECONDS: Final = 0.2

STATE_INTERVAL_SECONDS: Final = 0.5
"""The time between two partition states that are saved only to name their new owner: one hundred
brokers that take over partitions together write 200 of them in a second."""
STATE_CHECK_SECONDS: Final = 5.0


class ClusterNode:
    """A broker of a cluster."""

    def __init__(
        self,
        metadata: MetadataStore,
        *,
        topic_store: TopicStore,
        cache: ClusterCache,
        guards: OwnershipGuards,
        partition_states: PartitionStateStore,
        registration: Registration,
        storage: StorageEngine,
        shards: Shards,
        streams: Streams,
        cleaner: DeadStreamCleaner,
        restorer: Restorer,
        broker_id: int,
        cluster_id: str,
        defaults: TopicDefaults,
        settings: ControllerSettings,
        clock: Callable[[], int],
        random: Random,
    ) -> None:
        self._metadata = metadata
        self._topic_store = topic_store
        self._broker_id = broker_id
        self._clock = clock
        self._shards = shards
        self._storage = storage
        self._partition_states = partition_states
        self.cache = cache
        self.registration = registration
        closed_topics = ClosedTopics(metadata, cache, topic_store, broker_id=broker_id, clock=clock)
        self.ownership = Ownership(
            cache,
            topic_store,
            storage,
            shards,
            guards=guards,
            partition_states=partition_states,
            transfers=OwnershipTransfer(metadata, cache, storage, shards, clock=clock),
            closed_topics=closed_topics,
            defaults=defaults,
        )
        self.drainer = Drainer(cache, registration, self.ownership)
        self.topics = self._build_topics(closed_topics)
        self.controller = Controller(
            metadata,
            cache,
            topic_store,
            streams,
            cleaner,
            restorer=restorer,
            broker_id=broker_id,
            cluster_id=cluster_id,
            clock=clock,
            random=random,
            settings=settings,
        )
        self._sessions = BrokerSessions(
            metadata,
            storage,
            registration,
            self.controller,
            self.ownership,
            broker_id=broker_id,
            clock=clock,
            random=random,
        )

    async def join(self) -> int:
        """Start the first broker session; return its epoch."""
        await _migrate_unowned_partitions(
            self._metadata, self._topic_store, broker_id=self._broker_id, now_ms=self._clock()
        )
        self.ownership.subscribe()
        self._topic_store.subscribe_deletions(self._finish_deletions)
        self.controller.on_elected(self._finish_deletions)
        self.controller.on_cleanup(self.topics.sweep)
        self.controller.on_term_end(self.topics.end_term)
        return await self._sessions.start()

    async def wait_until_ready(self, seconds: float) -> bool:
        """Wait until this broker serves what is assigned to it; return false on timeout.

        A pending restore of the metadata is awaited without timeout: until it is complete, the
        assignments are not reliable.
        """
        await self.registration.restore_guard.wait_for_restore()
        await self._wait_for_topics()
        return await self.ownership.wait_until_up_to_date(seconds)

    async def _wait_for_topics(self) -> None:
        """Wait until the topic store shows a restore that another broker has completed.

        Otherwise clients could see fewer partitions for a moment.
        """
        is_loaded = False
        while not is_loaded:
            try:
                completed = await self._metadata.get(COMPLETED_KEY)
                if completed and self._topic_store.revision < completed.mod_revision:
                    await self._topic_store.current()
                is_loaded = True
            except OperatingError as error:
                logger.warning("topics not loaded yet", reason=str(error))
                await asyncio.sleep(RETRY_SECONDS)

    async def run(self) -> None:
        """Run the duties of a cluster member; cancel it to stop."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._sessions.run())
            group.create_task(self.ownership.run())
            group.create_task(self.controller.run())
            group.create_task(self._refresh_partition_states())

    async def _refresh_partition_states(self) -> None:
        """Save the states of partitions that this broker has got from others, at a limited rate.

        Otherwise they would name the former owner until the next roll, which may never come.
        """
        while True:
            for log in list(self._storage.logs):
                if self._partition_states.names_earlier_owner(log):
                    await asyncio.sleep(STATE_INTERVAL_SECONDS)
                    with suppress(NotOwnerError, OperatingError):  # The next check tries again.
                        await self._partition_states.save(log)
            await asyncio.sleep(STATE_CHECK_SECONDS)

    async def leave(self, seconds: float) -> None:
        """Transfer everything this broker owns, if there is another broker."""
        try:
            async with asyncio.timeout(seconds):
                _, pending = await self.drainer.drain(None, seconds)
        except (KafscaleError, TimeoutError) as error:
            logger.warning("drain failed", reason=str(error) or "timed out")
        else:
            if pending and len(self.cache.brokers) > 1:
                logger.warning("drain incomplete", left=len(pending))

    async def close(self) -> None:
        """Deregister from the cluster."""
        self.controller.end_session()
        await self.topics.end_term()
        await self.registration.deregister()

    def problems(self) -> Mapping[str, str]:
        """Why this broker cannot serve clients; empty if it can."""
        if not self.registration.lease_is_valid:
            return {"cluster": "the metadata store has not confirmed this broker's lease"}
        if not self.registration.restore_guard.is_restore_complete:
            return {"cluster": "the metadata was restored, and does not agree with the bucket yet"}
        return {}

    def status(self) -> ClusterStatus:
        """The cluster metrics of this broker."""
        return ClusterStatus(
            brokers=len(self.cache.brokers),
            is_controller=self.controller.is_controller,
            lease_is_valid=self.registration.lease_is_valid,
            partitions=len(self._storage.logs),
            shards=len(self._shards.served),
            unknown_wal_objects=self.controller.stream_cleanup.result.unknown_objects,
            damaged_wal_objects=self.controller.stream_cleanup.result.damaged_objects,
        )

    def _build_topics(self, closed_topics: ClosedTopics) -> Topics:
        return Topics(
            self._topic_store,
            wait_for_leaders=self.ownership.wait_for_leaders,
            wait_until_closed=closed_topics.wait_until_closed,
            has_objects=self._storage.has_objects,
            delete_objects=self._delete_objects,
            clock=self._clock,
        )

    # --- deletion of topics ---------------------------------------------------------------------

    def _finish_deletions(self) -> None:
        if self.controller.is_active and (term := self.controller.term) is not None:
            self.topics.finish_deletions(term)

    async def _delete_objects(self, directory: str) -> int:
        """Delete the objects of a deleted topic, unless a pending restore may undo the deletion."""
        if await find_pending_restore(self._metadata):
            raise StoreUnavailableError(
                "the metadata was restored, and does not agree with the bucket yet"
            )
        return await self._storage.delete_objects(directory)


async def _migrate_unowned_partitions(
    store: MetadataStore, topic_store: TopicStore, *, broker_id: int, now_ms: int
) -> None:
    """Assign the partitions of a store that has topics but no assignments.

    It is from a single broker, and was written before partitions had owners. They are never treated
    as new: they are assigned to a broker session that has ended, so that they are taken over like
    those of any failed broker, with all records in its WAL streams.
    """
    if not topic_store.topics or (await store.range(keys.ASSIGNMENTS)).entries:
        return
    # Former versions used the broker epoch as leader epoch, so new leader epochs must be later.
    epoch = await id_allocator.allocate(store, id_allocator.broker_epoch_counter(str(broker_id)))
    orphans = [
        Assignment(
            topic=topic.name,
            topic_id=topic.id,
            partition=number,
            broker_id=broker_id,
            broker_epoch=epoch,
            leader_epoch=epoch,
            fully_rolled=False,
            assigned_ms=now_ms,
        )
        for topic in topic_store.topics.values()
        for number in range(topic.partitions)
    ]
    puts = [
        Put(keys.assignment(orphan.topic, orphan.partition), encode_assignment(orphan))
        for orphan in orphans
    ]
    for first in range(0, len(puts), OPERATIONS_MAX):
        some = puts[first : first + OPERATIONS_MAX]
        await store.commit([absent(put.key) for put in some], some)
    logger.info("unowned partitions migrated", count=len(puts), broker_id=broker_id)
