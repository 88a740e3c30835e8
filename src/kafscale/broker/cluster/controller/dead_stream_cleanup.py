"""Cleanup of dead WAL streams: passes to the cleaner how far each partition is rolled.

The controller calls `run_once`, which calls `storage.wal.dead_stream_cleaner` to delete objects.

Invariants: the reported offsets are never ahead of the store. A topic counts as deleted only if the
store did not know it when it was read *after* the cleaner had found its records: otherwise a topic
younger than the last read would lose records. A former controller, whose cache may be stale, is
rejected by the store before it does anything.
"""

import asyncio
from typing import Final

import msgspec

from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.topic_codec import decode_partition_state, decode_topic
from kafscale.metadata.store.base import Entry, MetadataStore
from kafscale.observability.logging import get_logger
from kafscale.storage.wal.dead_stream_cleaner import DeadStreamCleaner

logger = get_logger(__name__)

ENTRIES_AT_ONCE: Final = 16
"""How many records are decoded before the event loop runs other tasks."""


class _Rolled(msgspec.Struct, frozen=True, gc=False):
    """The rolled end offset of a partition, by its state of this revision."""

    mod_revision: int
    topic_id: bytes
    partition: int
    end_offset: int


class DeadStreamCleanup:
    """Runs the cleaner with the offsets from the metadata store."""

    def __init__(
        self, store: MetadataStore, cache: ClusterCache, cleaner: DeadStreamCleaner
    ) -> None:
        self._store = store
        self._cache = cache
        self._cleaner = cleaner
        self._known: dict[str, _Rolled] = {}
        """Decoded partition states of the last run, by key."""
        self._unknown: set[bytes] = set()
        """Ids of topics that the cleaner has found, and the store did not know before."""

    async def run_once(self, controller: Entry) -> None:
        """Clean up once, if this broker is still controller."""
        if not self._cache.connected or await self._store.get(keys.CONTROLLER) != controller:
            return
        ends = await self._rolled_ends()
        deleted_topics = self._unknown.difference(ends)
        self._unknown.clear()

        def rolled_end(topic_id: bytes, partition: int) -> int | None:
            if topic_id in deleted_topics:
                return None
            if topic_id not in ends:
                self._unknown.add(topic_id)
                return 0
            return ends[topic_id].get(partition, 0)

        deleted = await self._cleaner.clean(rolled_end, self._is_live)
        if deleted:
            logger.info("dead streams cleaned up", objects=deleted)

    async def _rolled_ends(self) -> dict[bytes, dict[int, int]]:
        """The rolled end offsets of the partitions of all topics that exist, by topic id."""
        snapshot = await self._store.range(keys.TOPICS)
        ends: dict[bytes, dict[int, int]] = {}
        known: dict[str, _Rolled] = {}
        for count, entry in enumerate(snapshot.entries, 1):
            named = keys.parse(entry.key)
            if isinstance(named, keys.TopicConfigKey):
                ends[decode_topic(entry).id] = {}
            elif isinstance(named, keys.PartitionStateKey):
                known[entry.key] = self._rolled(entry)
            if count % ENTRIES_AT_ONCE == 0:
                await asyncio.sleep(0)
        self._known = known
        for rolled in known.values():
            if rolled.topic_id in ends:
                ends[rolled.topic_id][rolled.partition] = rolled.end_offset
        return ends

    def _rolled(self, entry: Entry) -> _Rolled:
        """Decode a state, unless it is unchanged since the last run."""
        known = self._known.get(entry.key)
        if known is not None and known.mod_revision == entry.mod_revision:
            return known
        state = decode_partition_state(entry)
        return _Rolled(entry.mod_revision, state.topic_id, state.partition, state.rolled_end)

    def _is_live(self, broker_id: int, epoch: int) -> bool:
        """Whether this broker may still write to its stream; true in doubt."""
        broker = self._cache.brokers.get(broker_id)
        return not self._cache.connected or (broker is not None and broker.epoch <= epoch)
