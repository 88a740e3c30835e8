"""Loads groups and their offsets as the last owner of their shards left them in the store.

Invariants: a damaged record is logged and left in the store; it affects no group but its own. An
offset of a topic that was deleted, or recreated since, is dropped. The topic store may be older
than the records read here, so a topic that it does not show is read from the metadata store. A
transaction that was being committed is committed. Reading yields to other tasks; restoring does
not.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from kafscale.broker.group_coordinator.group_registry import GroupRegistry
from kafscale.broker.group_coordinator.pending_transaction import DECISION, PART_BYTES
from kafscale.errors import DamagedObjectError
from kafscale.groups.committed_offsets import CommittedOffset, PendingOffsets
from kafscale.groups.model import GroupRecord
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.group_codec import decode_group, decode_offset, decode_pending_offsets
from kafscale.metadata.schema.model import Topic, shard_of
from kafscale.metadata.schema.topic_codec import decode_topic
from kafscale.metadata.store.base import Entry, MetadataStore
from kafscale.observability.logging import get_logger
from kafscale.text.topic_partition import TopicPartition

logger = get_logger(__name__)

ENTRIES_AT_ONCE: Final = 500
"""How many records are decoded before the event loop runs other tasks: a few milliseconds."""

GroupKey = keys.ConsumerGroupKey | keys.CommittedOffsetKey | keys.PendingOffsetsKey


class LoadedShard(msgspec.Struct):
    """What the store holds for one shard."""

    groups: list[GroupRecord] = []
    offsets: list[tuple[keys.CommittedOffsetKey, CommittedOffset]] = []
    pending: dict[tuple[str, int], dict[int, tuple[PendingOffsets, int]]] = {}
    """The parts of transactions and their sizes, by group and producer id, and by number."""

    def add(self, key: GroupKey, entry: Entry) -> Mapping[TopicPartition, CommittedOffset]:
        """Add a record; returns the offsets in it. Raises `DamagedObjectError`."""
        if isinstance(key, keys.ConsumerGroupKey):
            self.groups.append(decode_group(entry))
            return {}
        if isinstance(key, keys.PendingOffsetsKey):
            pending = decode_pending_offsets(entry)
            self.pending.setdefault((key.group, key.producer_id), {})[key.number] = (
                pending,
                PART_BYTES + len(entry.value),
            )
            return pending.offsets
        committed = decode_offset(entry)
        self.offsets.append((key, committed))
        return {(key.topic, key.partition): committed}


class LoadedShards(msgspec.Struct):
    """What the store holds for some shards."""

    by_shard: Mapping[int, LoadedShard]
    topic_ids: Mapping[str, bytes | None] = {}
    """Ids of topics that were read from the store: None if damaged, missing if deleted."""


async def read(
    store: MetadataStore, shards: Collection[int], topics: Mapping[str, Topic]
) -> LoadedShards:
    """Read all groups and offsets of these shards."""
    loaded = LoadedShards({shard: LoadedShard() for shard in shards})
    doubtful = set()
    snapshot = await store.range(keys.CONSUMERS)
    async for shard, key, entry in _of_shards(snapshot.entries, loaded.by_shard.keys()):
        try:
            offsets = loaded.by_shard[shard].add(key, entry)
        except DamagedObjectError as error:
            logger.error("group record damaged", key=error.key, reason=error.reason)
            continue
        for (topic, _), committed in offsets.items():
            if not _belongs_to(committed, topics.get(topic)):
                doubtful.add(topic)
    loaded.topic_ids = await _topic_ids(store, doubtful)
    return loaded


def restore(
    loaded: LoadedShards,
    registry: GroupRegistry,
    shards: Collection[int],
    topics: Mapping[str, Topic],
) -> None:
    """Restore the groups of these shards; offsets of deleted topics are deleted."""

    def is_current(topic: str, committed: CommittedOffset) -> bool:
        return _belongs_to(committed, topics.get(topic)) or _is_stored(committed, topic, loaded)

    for shard in (loaded.by_shard[shard] for shard in shards):
        for record in shard.groups:
            registry.restore(record)
        # A group that never had members has offsets but no record, so offsets come second.
        for key, committed in shard.offsets:
            offsets = registry.get_or_create(key.group).offsets
            offsets.restore((key.topic, key.partition), committed)
            if not is_current(key.topic, committed):
                offsets.delete(((key.topic, key.partition),))
        # Those that a transaction has committed are compared with the others, so they come last.
        for (group_id, _), parts in shard.pending.items():
            pending = _joined([parts[number][0] for number in sorted(parts)])
            pending.is_committed = DECISION in parts
            pending.offsets = {
                topic_partition: committed
                for topic_partition, committed in pending.offsets.items()
                if is_current(topic_partition[0], committed)
            }
            sizes = {number: size_bytes for number, (_, size_bytes) in parts.items()}
            sizes.pop(DECISION, None)
            registry.get_or_create(group_id).offsets.restore_pending(pending, sizes)


def _joined(parts: Sequence[PendingOffsets]) -> PendingOffsets:
    """The transaction of these parts, ascending by number."""
    joined = replace(parts[-1], offsets={})
    for part in parts:
        # Of two offsets of a partition, that of the higher number was committed later.
        joined.offsets.update(part.offsets)
    return joined


def _belongs_to(committed: CommittedOffset, topic: Topic | None) -> bool:
    return topic is not None and committed.is_of(topic.id)


def _is_stored(committed: CommittedOffset, topic: str, loaded: LoadedShards) -> bool:
    """Whether the store has the topic of an offset, or a damaged record that may be it."""
    if topic not in loaded.topic_ids:
        return False
    topic_id = loaded.topic_ids[topic]
    return topic_id is None or committed.is_of(topic_id)


async def _topic_ids(store: MetadataStore, names: Iterable[str]) -> dict[str, bytes | None]:
    """The current topic ids in the store."""
    ids: dict[str, bytes | None] = {}
    for name in sorted(names):
        entry = await store.get(keys.topic_config(name))
        if entry is not None:
            ids[name] = _topic_id(entry)
    return ids


def _topic_id(entry: Entry) -> bytes | None:
    try:
        return decode_topic(entry).id
    except DamagedObjectError as error:
        logger.error("topic record damaged", key=error.key, reason=error.reason)
        return None


async def _of_shards(
    entries: tuple[Entry, ...], shards: Collection[int]
) -> AsyncIterator[tuple[int, GroupKey, Entry]]:
    for count, entry in enumerate(entries, start=1):
        key = keys.parse(entry.key)
        if not isinstance(key, GroupKey):
            logger.warning("unknown group key ignored", key=entry.key)
        elif (shard := shard_of(key.group)) in shards:
            yield shard, key, entry
        if count % ENTRIES_AT_ONCE == 0:
            await asyncio.sleep(0)
