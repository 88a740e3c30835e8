"""Reaping: tells the reaper of dead WAL streams how far partitions are in segments.

The laws: what is said is not more than the store says. That a topic is gone is said only if the
store did not know it when it was asked *after* the reaper had met it: a topic that was younger than
our knowledge would lose its records otherwise. A stale controller, whose view may be old, is
refused by the store before it does anything.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from kafscale.metadata.cluster.cluster_cache import ClusterView
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.topic_codec import decode_partition_state, decode_topic
from kafscale.metadata.store.base import Entry, MetadataStore
from kafscale.observability.logging import get_logger

log = get_logger(__name__)

ENTRIES_AT_ONCE: Final = 16
"""How many records are read before others get their turn."""


class StreamReaper(Protocol):
    """Deletes objects of dead WAL streams that nobody needs any more."""

    async def reap(
        self, rolled_end: Callable[[bytes, int], int | None], is_live: Callable[[int, int], bool]
    ) -> int:
        """Delete what is in segments up to `rolled_end`; return how many objects were deleted."""


class _Rolled(msgspec.Struct, frozen=True, gc=False):
    """Up to where a partition is in segments, by its state of this revision."""

    mod_revision: int
    topic_id: bytes
    partition: int
    end_offset: int


class Reaping:
    """The rounds of the reaper."""

    def __init__(self, store: MetadataStore, view: ClusterView, reaper: StreamReaper) -> None:
        self._store = store
        self._view = view
        self._reaper = reaper
        self._known: dict[str, _Rolled] = {}
        """What the states said in the last round, by key."""
        self._unknown: set[bytes] = set()
        """Ids of topics that the reaper has met, and the store did not know before."""

    async def step(self, controller: Entry) -> None:
        """Reap once, if we are still controller."""
        if not self._view.connected or await self._store.get(keys.CONTROLLER) != controller:
            return
        ends = await self._rolled_ends()
        gone = self._unknown.difference(ends)
        self._unknown.clear()

        def rolled_end(topic_id: bytes, partition: int) -> int | None:
            if topic_id in gone:
                return None
            if topic_id not in ends:
                self._unknown.add(topic_id)
                return 0
            return ends[topic_id].get(partition, 0)

        deleted = await self._reaper.reap(rolled_end, self._is_live)
        if deleted:
            log.info("dead streams reaped", objects=deleted)

    async def _rolled_ends(self) -> dict[bytes, dict[int, int]]:
        """Up to which offset partitions are in segments, by the ids of all topics that exist."""
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
        """What a state says; one that has not changed since the last round is not read again."""
        known = self._known.get(entry.key)
        if known is not None and known.mod_revision == entry.mod_revision:
            return known
        state = decode_partition_state(entry)
        return _Rolled(entry.mod_revision, state.topic_id, state.partition, state.rolled_end)

    def _is_live(self, broker_id: int, epoch: int) -> bool:
        """Whether this broker may still write to its stream; in doubt, it may."""
        broker = self._view.brokers.get(broker_id)
        return not self._view.connected or (broker is not None and broker.epoch <= epoch)
