"""Groups and offsets as the last owner of their shards left them in the store.

The laws: a record that cannot be read is told and left where it is; it stops no group but its own.
An offset of a topic that is gone, or that was created again since, is no offset any more. What the
catalog shows may be older than what is read here, so that a topic which it does not show is asked
for. Reading gives way to others, restoring does not.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from itertools import chain
from typing import Final

import msgspec

from kafscale.broker.group_coordinator.group_registry import GroupDirectory
from kafscale.errors import DamagedObjectError
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.groups.model import GroupRecord
from kafscale.metadata.cluster.group_shards import shard_of
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.group_codec import decode_group, decode_offset
from kafscale.metadata.schema.model import Topic
from kafscale.metadata.schema.topic_codec import decode_topic
from kafscale.metadata.store.base import Entry, MetadataStore
from kafscale.observability.logging import get_logger

log = get_logger(__name__)

ENTRIES_AT_ONCE: Final = 500
"""How many are decoded before others have a turn: some milliseconds' worth."""


class Found(msgspec.Struct):
    """What the store knows of some shards."""

    groups: dict[int, list[GroupRecord]]
    """By shard, as the offsets."""
    offsets: dict[int, list[tuple[keys.CommittedOffsetKey, CommittedOffset]]]
    topic_ids: Mapping[str, bytes | None] = {}
    """Of topics that were asked for: None where it cannot be read, nothing where it is gone."""


async def read(store: MetadataStore, shards: Collection[int], topics: Mapping[str, Topic]) -> Found:
    """All groups and offsets of these shards."""
    found = Found({shard: [] for shard in shards}, {shard: [] for shard in shards})
    doubtful = set()
    snapshot = await store.range(keys.CONSUMERS)
    async for shard, key, entry in _of_shards(snapshot.entries, found.groups.keys()):
        try:
            if isinstance(key, keys.ConsumerGroupKey):
                found.groups[shard].append(decode_group(entry))
                continue
            committed = decode_offset(entry)
        except DamagedObjectError as error:
            log.error("group record damaged", key=error.key, reason=error.reason)  # noqa: TRY400
            continue
        found.offsets[shard].append((key, committed))
        if not _is_of(committed, topics.get(key.topic)):
            doubtful.add(key.topic)
    found.topic_ids = await _topic_ids(store, doubtful)
    return found


def restore(
    found: Found, directory: GroupDirectory, shards: Collection[int], topics: Mapping[str, Topic]
) -> None:
    """Bring back the groups of these shards; offsets that mean nothing any more are deleted."""
    for record in chain.from_iterable(found.groups[shard] for shard in shards):
        directory.restore(record)
    # A group that never had members has offsets and no record, so these come second.
    for key, committed in chain.from_iterable(found.offsets[shard] for shard in shards):
        place = (key.topic, key.partition)
        hosted = directory.classic(key.group)
        hosted.offsets.restore(place, committed)
        if not (_is_of(committed, topics.get(key.topic)) or _is_stored(committed, key, found)):
            hosted.offsets.forget((place,))


def _is_of(committed: CommittedOffset, topic: Topic | None) -> bool:
    return topic is not None and committed.is_of(topic.id)


def _is_stored(committed: CommittedOffset, key: keys.CommittedOffsetKey, found: Found) -> bool:
    """Whether the store has the topic of an offset, or what may be it."""
    if key.topic not in found.topic_ids:
        return False
    topic_id = found.topic_ids[key.topic]
    return topic_id is None or committed.is_of(topic_id)


async def _topic_ids(store: MetadataStore, names: Iterable[str]) -> dict[str, bytes | None]:
    """The ids of topics as the store has them now."""
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
        log.error("topic record damaged", key=error.key, reason=error.reason)  # noqa: TRY400
        return None


async def _of_shards(
    entries: tuple[Entry, ...], shards: Collection[int]
) -> AsyncIterator[tuple[int, keys.ConsumerGroupKey | keys.CommittedOffsetKey, Entry]]:
    for count, entry in enumerate(entries, start=1):
        key = keys.parse(entry.key)
        if not isinstance(key, keys.ConsumerGroupKey | keys.CommittedOffsetKey):
            log.warning("unknown key among groups", key=entry.key)
        elif (shard := shard_of(key.group)) in shards:
            yield shard, key, entry
        if count % ENTRIES_AT_ONCE == 0:
            await asyncio.sleep(0)
