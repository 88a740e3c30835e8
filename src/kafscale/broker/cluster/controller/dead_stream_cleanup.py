"""Cleanup of dead WAL streams: passes to the cleaner what the metadata store knows.

The controller calls `run_once`, which calls `storage.wal.dead_stream_cleaner` to delete objects.

Invariants: the reported offsets are never ahead of the store. A topic counts as deleted only if a
record of its deletion says so, and a session as ended only if its epoch was allocated here: what
this cluster does not know is kept, with a warning and a metric. A former controller, whose cache
may be stale, is rejected by the store before it does anything.

The record of a deletion (`/kafscale/deleted-topics/`) is removed when no WAL object can hold
records of the topic any more: when all objects with records were written long after it.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Final

from kafscale.metadata.cluster import id_allocator
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.topic_codec import decode_partition_state
from kafscale.metadata.store.base import Delete, Entry, MetadataStore, unchanged
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.logging import get_logger
from kafscale.storage.wal.dead_stream_cleaner import (
    CleanupResult,
    DeadStreamCleaner,
    RolledEnds,
    Session,
)

logger = get_logger(__name__)

ENTRIES_AT_ONCE: Final = 16
"""How many records are decoded before the event loop runs other tasks."""

LATE_WRITE_MS: Final = 24 * 60 * 60 * 1000
"""Longer than a write of a suspended process can take: until then, objects may be added that hold
records of a deleted topic.
"""

FORGET_MAX: Final = 100
"""How many records of deletions are removed at once."""


class DeadStreamCleanup:
    """Runs the cleaner with the offsets from the metadata store."""

    def __init__(
        self,
        store: MetadataStore,
        cache: ClusterCache,
        topic_store: TopicStore,
        cleaner: DeadStreamCleaner,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._cache = cache
        self._topic_store = topic_store
        self._cleaner = cleaner
        self._clock = clock
        self._next_epochs: dict[str, int] = {}
        """The next epoch of each broker, by counter key."""
        self._warned: set[object] = set()
        self.result = CleanupResult()
        """What the last run has found."""

    async def run_once(self, controller: Entry) -> None:
        """Clean up once, if this broker is still controller."""
        if not self._cache.connected or await self._store.get(keys.CONTROLLER) != controller:
            return
        counters = await self._store.range(keys.counter(id_allocator.broker_epoch_counter("")))
        self._next_epochs = {
            entry.key: id_allocator.counter_value(entry) for entry in counters.entries
        }
        before = self.result
        self.result = await self._cleaner.clean(self._rolled_ends, self._session)
        if self.result.deleted_count:
            logger.info("dead streams cleaned up", objects=self.result.deleted_count)
        self._warn(before, self.result)
        await self._forget_deletions(controller)

    # --- sessions -------------------------------------------------------------------------------

    def _session(self, broker_id: int, epoch: int) -> Session:
        """The session of a stream; live in doubt, because it may still write to its stream."""
        broker = self._cache.brokers.get(broker_id)
        if not self._cache.connected or (broker is not None and broker.epoch <= epoch):
            return Session.LIVE
        counter = keys.counter(id_allocator.broker_epoch_counter(str(broker_id)))
        return Session.ENDED if epoch < self._next_epochs.get(counter, 0) else Session.UNKNOWN

    # --- topics ---------------------------------------------------------------------------------

    async def _rolled_ends(self, topic_ids: Collection[bytes]) -> RolledEnds:
        """The rolled end offsets of these topics; None for deleted ones."""
        ends: dict[bytes, dict[int, int] | None] = {}
        for topic_id in topic_ids:
            topic = self._topic_store.by_id.get(topic_id)
            if topic is not None:
                ends[topic_id] = await self._rolled_ends_of(topic.name, topic_id)
            elif await self._is_deleted(topic_id):
                ends[topic_id] = None
        return ends

    async def _rolled_ends_of(self, name: str, topic_id: bytes) -> dict[int, int]:
        ends = {}
        snapshot = await self._store.range(keys.partition_states(name))
        for count, entry in enumerate(snapshot.entries, 1):
            state = decode_partition_state(entry)
            if state.topic_id == topic_id:
                ends[state.partition] = state.rolled_end
            if count % ENTRIES_AT_ONCE == 0:
                await asyncio.sleep(0)
        return ends

    async def _is_deleted(self, topic_id: bytes) -> bool:
        """Whether there is a record that this cluster has deleted the topic."""
        pending, retired = self._topic_store.deletions, self._topic_store.retired
        tombstones = [*pending.values(), *retired.values()]
        return (
            any(tombstone.id == topic_id for tombstone in tombstones)
            or await self._store.get(keys.deleted_topic(topic_id)) is not None
        )

    async def _forget_deletions(self, controller: Entry) -> None:
        oldest_ms = self.result.oldest_records_ms
        before_ms = (self._clock() if oldest_ms is None else oldest_ms) - LATE_WRITE_MS
        records = (await self._store.range(keys.DELETED_TOPICS)).entries
        old = [entry for entry in records if id_allocator.counter_value(entry) < before_ms]
        for start in range(0, len(old), FORGET_MAX):
            await self._store.commit(
                [unchanged(controller)],
                [Delete(entry.key) for entry in old[start : start + FORGET_MAX]],
            )

    def _warn(self, before: CleanupResult, after: CleanupResult) -> None:
        """Log once what is kept because it is unknown, if two runs found it: caches may lag."""
        topics = (before.unknown_topics & after.unknown_topics).difference(self._warned)
        streams = (before.unknown_streams & after.unknown_streams).difference(self._warned)
        if topics or streams:
            self._warned |= topics | streams
            logger.warning(
                "unknown WAL objects kept",
                objects=after.unknown_objects,
                topic_ids=sorted(topic_id.hex() for topic_id in topics)[:10],
                streams=sorted(streams)[:10],
            )
