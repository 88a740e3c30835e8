"""Loads groups and committed offsets as the last owner of their shards left them in the store.

Invariants: a damaged record is logged and left in the store; it affects no group but its own. An
offset of a topic that was deleted, or recreated since, is dropped. The topic store may be older
than the records read here, so a topic that it does not show is read from the metadata store.
Reading yields to other tasks; restoring does not.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from itertools import chain
from typing import Final

import msgspec

from kafscale.broker.group_coordinator.group_registry import GroupRegistry
from kafscale.errors import DamagedObjectError
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.groups.model import GroupRecord
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.group_codec import decode_group, decode_offset
from kafscale.metadata.schema.model import Topic, shard_of
from kafscale.metadata.schema.topic_codec import decode_topic
from kafscale.metadata.store.base import Entry, MetadataStore
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

ENTRIES_AT_ONCE: Final = 500
"""How many records are decoded before the event loop runs other tasks: a few milliseconds."""


class LoadedShards(msgspec.Struct):
    """What the store holds for some shards."""

    groups: dict[int, list[GroupRecord]]
    """By shard, like the offsets."""
    offsets: dict[int, list[tuple[keys.CommittedOffsetKey, CommittedOffset]]]
    topic_ids: Mapping[str, bytes | None] = {}
    """Ids of topics that were read from the store: None if damaged, missing if deleted."""


async def read(
    store: MetadataStore, shards: Collection[int], topics: Mapping[str, Topic]
) -> LoadedShards:
    """Read all groups and offsets of these shards."""
    loaded = LoadedShards({shard: [] for shard in shards}, {shard: [] for shard in shards})
    doubtful = set()
    snapshot = await store.range(keys.CONSUMERS)
    async for shard, key, entry in _of_shards(snapshot.entries, loaded.groups.keys()):
        try:
            if isinstance(key, keys.ConsumerGroupKey):
                loaded.groups[shard].append(decode_group(entry))
                continue
            committed = decode_offset(entry)
        except DamagedObjectError as error:
            logger.error("group record damaged", key=error.key, reason=error.reason)
            continue
        loaded.offsets[shard].append((key, committed))
        if not _belongs_to(committed, topics.get(key.topic)):
            doubtful.add(key.topic)
    loaded.topic_ids = await _topic_ids(store, doubtful)
    return loaded


def restore(
    loaded: LoadedShards,
    registry: GroupRegistry,
    shards: Collection[int],
    topics: Mapping[str, Topic],
) -> None:
    """Restore the groups of these shards; offsets of deleted topics are deleted."""
    for record in chain.from_iterable(loaded.groups[shard] for shard in shards):
        registry.restore(record)
    # A group that never had members has offsets but no record, so offsets come second.
    for key, committed in chain.from_iterable(loaded.offsets[shard] for shard in shards):
        topic_partition = (key.topic, key.partition)
        runtime = registry.get_or_create(key.group)
        runtime.offsets.restore(topic_partition, committed)
        if not (
            _belongs_to(committed, topics.get(key.topic)) or _is_stored(committed, key, loaded)
        ):
            runtime.offsets.delete((topic_partition,))


def _belongs_to(committed: CommittedOffset, topic: Topic | None) -> bool:
    return topic is not None and committed.is_of(topic.id)


def _is_stored(
    committed: CommittedOffset, key: keys.CommittedOffsetKey, loaded: LoadedShards
) -> bool:
    """Whether the store has the topic of an offset, or a damaged record that may be it."""
    if key.topic not in loaded.topic_ids:
        return False
    topic_id = loaded.topic_ids[key.topic]
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
) -> AsyncIterator[tuple[int, keys.ConsumerGroupKey | keys.CommittedOffsetKey, Entry]]:
    for count, entry in enumerate(entries, start=1):
        key = keys.parse(entry.key)
        if not isinstance(key, keys.ConsumerGroupKey | keys.CommittedOffsetKey):
            logger.warning("unknown group key ignored", key=entry.key)
        elif (shard := shard_of(key.group)) in shards:
            yield shard, key, entry
        if count % ENTRIES_AT_ONCE == 0:
            await asyncio.sleep(0)
