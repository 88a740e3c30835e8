"""`TopicStore`: the topics of the cluster, as every broker sees them, and operations on them.

Invariants:

1. Reads do not wait. Watches keep the topics current, so that a change by any broker is soon
   visible on all. An operation returns when its change is visible here. A record that cannot be
   decoded is logged and ignored.
2. Every change is one commit with compares: of two brokers that create the same topic, one
   succeeds.
3. Deleting a topic writes a tombstone in the commit that removes the topic. The name is blocked
   until no broker serves the topic any more and its objects are deleted. While the tombstone
   exists, a new topic of that name has its id in the keys of its objects: a new topic never sees
   records of an old one, even if a write of a former owner takes effect hours later.
4. Listeners are called once per change of a topic, when it is visible here, whichever broker made
   the change. A topic that was deleted and created again is reported as a deletion and a creation.

Object removal and config validation are done elsewhere.
"""

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from kafscale.errors import (
    DamagedObjectError,
    InvalidPartitionsError,
    TopicExistsError,
    UnknownTopicError,
    UnknownTopicIdError,
)
from kafscale.metadata.cluster.watch_cache import WatchCache
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import DEFAULT_NAMESPACE, Topic
from kafscale.metadata.schema.topic_codec import decode_topic, encode_topic
from kafscale.metadata.store.base import (
    Compare,
    Delete,
    DeletePrefix,
    Entry,
    MetadataStore,
    Operation,
    Put,
    absent,
    time_limit,
    unchanged,
)
from kafscale.metadata.topics import names
from kafscale.metadata.topics.internal import InternalTopics
from kafscale.observability.logging import get_logger

TIMEOUT_MS: Final = 30_000
"""The time limit of a change, including the wait until an old topic of the same name is removed."""

Replicas = Mapping[int, tuple[int, ...]]
"""Brokers by partition, in the order of preference."""

TopicListener = Callable[[Topic | None, Topic | None], None]
"""Called with the topic before and after a change; None if it does not exist."""

logger = get_logger(__name__)


class TopicStore:
    """All topics by name and id, pending deletions, and the operations on them."""

    def __init__(
        self,
        store: MetadataStore,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._timeout_ms = timeout_ms
        self._topics: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._deletions: dict[str, Topic] = {}
        self._retired: dict[str, Topic] = {}
        self._listeners: list[TopicListener] = []
        self._deletion_listeners: list[Callable[[], None]] = []
        self._configs_cache = WatchCache(store, keys.TOPICS, self._config_changed, _is_config)
        self._deletions_cache = WatchCache(store, keys.DELETIONS, self._deletion_changed)
        self._deleted_cache = WatchCache(store, keys.DELETED_TOPICS, lambda _key, _entry: None)
        self.internal = InternalTopics(store)
        self.topics: Mapping[str, Topic] = MappingProxyType(self._topics)
        self.by_id: Mapping[bytes, Topic] = MappingProxyType(self._by_id)
        self.visible: Mapping[str, Topic] = ChainMap(self._topics, self.internal.topics)  # type: ignore[arg-type]
        """All topics that clients can see, internal ones as well."""
        self.deletions: Mapping[str, Topic] = MappingProxyType(self._deletions)
        """Deleted topics whose objects are not all deleted yet, by name."""
        self.retired: Mapping[str, Topic] = MappingProxyType(self._retired)
        """The last deleted topic of each name, from when its objects are deleted."""

    @property
    def deleted_ids(self) -> frozenset[bytes]:
        """The ids of deleted topics of which there may still be records in the WAL."""
        tombstones = [*self.deletions.values(), *self.retired.values()]
        return frozenset(topic.id for topic in tombstones).union(
            bytes.fromhex(key.removeprefix(keys.DELETED_TOPICS))
            for key in self._deleted_cache.entries
        )

    @property
    def connected(self) -> bool:
        """True while watches work; if false, the topics may be outdated."""
        caches = (self._configs_cache, self._deletions_cache, self.internal)
        return all(cache.connected for cache in caches)

    @property
    def revision(self) -> int:
        """The store revision that the topics show."""
        return self._configs_cache.revision

    async def start(self) -> None:
        """Read all topics, then watch them until `close`."""
        await self.internal.start()
        await self._deleted_cache.start()
        await self._deletions_cache.start()
        await self._configs_cache.start()

    async def close(self) -> None:
        await self._configs_cache.close()
        await self._deletions_cache.close()
        await self._deleted_cache.close()
        await self.internal.close()

    async def wait_for_revision(self, revision: int) -> None:
        """Wait until a change of a topic that was made at `revision` is visible."""
        await self._configs_cache.wait_for_revision(revision)

    async def current(self) -> None:
        """Wait until all topics that the store has now are visible."""
        snapshot = await self._store.range(keys.TOPICS)
        await self.wait_for_revision(
            max((entry.mod_revision for entry in snapshot.entries), default=0)
        )

    def get(self, name: str) -> Topic | None:
        return self.topics.get(name)

    def find(self, name: str) -> Topic | None:
        """A topic that clients can see, which may be internal."""
        return self.visible.get(name)

    def find_by_id(self, topic_id: bytes) -> Topic | None:
        """Like `find`, by id."""
        return self.by_id.get(topic_id) or self.internal.find_by_id(topic_id)

    def is_internal(self, name: str) -> bool:
        return name in self.internal.topics and name not in self.topics

    def subscribe(self, listener: TopicListener) -> None:
        """Call `listener` after every change; it must not block.

        A listener that subscribes before `start` is called for every existing topic too.
        """
        self._listeners.append(listener)

    def subscribe_deletions(self, listener: Callable[[], None]) -> None:
        """Call `listener` when a deletion starts or finishes."""
        self._deletion_listeners.append(listener)

    def check_new(self, name: str, partitions: int) -> None:
        """Raise the errors that `create` would raise, from cached state (`validate_only`)."""
        if name in self.visible:
            raise TopicExistsError(f"Topic '{name}' already exists.")
        names.check(name)
        if partitions < 1:
            raise InvalidPartitionsError(
                "Number of partitions was set to an invalid non-positive value."
            )
        # Colliding names only affect readers of metrics, so cached state is enough: two brokers
        # that create such a pair at the same time may both succeed.
        names.check_collision(name, self.topics)

    async def create(
        self,
        name: str,
        partitions: int,
        configs: Mapping[str, str],
        now_ms: int,
        topic_id: bytes,
        *,
        id_in_keys: bool = False,
        replicas: Replicas | None = None,
        timeout_ms: int | None = None,
    ) -> Topic:
        """Create a topic, after the objects of an older topic of that name are deleted.

        Its keys have its id if the caller says so, or if the name was used before. `replicas` are
        the brokers that are requested for its partitions.
        """
        self.check_new(name, partitions)
        topic = Topic(
            name=name,
            id=topic_id,
            partitions=partitions,
            configs=dict(configs),
            created_ms=now_ms,
            namespace=self._namespace,
            replicas=dict(replicas or {}),
        )
        key = keys.topic_config(name)
        limit_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        async with time_limit(f"topic {name!r} was not created", limit_ms):
            while True:
                tombstone = await self._store.get(keys.deletion(name))
                if tombstone is not None and not decode_topic(tombstone).emptied_ms:
                    await self._wait_until_emptied(tombstone)
                    continue
                earlier = decode_topic(tombstone) if tombstone else None
                topic = replace(
                    topic,
                    id_in_keys=id_in_keys or earlier is not None,
                    earlier_without_id=earlier is not None
                    and (earlier.earlier_without_id or not earlier.id_in_keys),
                )
                is_unchanged = unchanged(tombstone) if tombstone else absent(keys.deletion(name))
                done = await self._store.commit(
                    [absent(key), is_unchanged], [Put(key, encode_topic(topic))]
                )
                if done.succeeded:
                    await self._configs_cache.wait_for_revision(done.revision)
                    return replace(topic, create_revision=done.revision, mod_revision=done.revision)
                if await self._store.get(key):
                    raise TopicExistsError(f"Topic '{name}' already exists.")

    async def delete(self, name: str, topic_id: bytes | None = None) -> Topic:
        """Delete a topic with its partition states and assignments, and write a tombstone.

        With an id, a topic that was created later under the same name is not deleted.
        """
        async with time_limit(f"topic {name!r} was not deleted", self._timeout_ms):
            while True:
                entry, topic = await self._read(name)
                if topic_id is not None and topic.id != topic_id:
                    raise UnknownTopicIdError(f"topic {name!r} was deleted and created again")
                done = await self._store.commit(
                    [unchanged(entry)],
                    [
                        DeletePrefix(keys.topic(name)),
                        DeletePrefix(keys.assignments(name)),
                        Put(keys.deletion(name), encode_topic(topic)),
                    ],
                )
                if done.succeeded:
                    await self._deletions_cache.wait_for_revision(done.revision)
                    await self._configs_cache.wait_for_revision(done.revision)
                    return topic

    async def mark_emptied(self, tombstone: Topic, now_ms: int, controller: Entry) -> None:
        """Record that the objects of a deleted topic are deleted; the name can be used again."""
        emptied = replace(tombstone, emptied_ms=now_ms)
        await self._change_tombstone(
            tombstone,
            controller,
            Put(keys.deletion(tombstone.name), encode_topic(emptied)),
            Put(keys.deleted_topic(tombstone.id), str(now_ms).encode()),
            DeletePrefix(keys.closed_topics(tombstone.id)),
        )

    async def remove_tombstone(self, tombstone: Topic, controller: Entry) -> None:
        """Forget a deleted topic, whose objects cannot come back any more."""
        await self._change_tombstone(tombstone, controller, Delete(keys.deletion(tombstone.name)))

    async def _change_tombstone(
        self, tombstone: Topic, controller: Entry, *changes: Operation
    ) -> None:
        name = tombstone.name
        async with time_limit(f"the deletion of topic {name!r} did not finish", self._timeout_ms):
            compare = Compare(key=keys.deletion(name), mod_revision=tombstone.mod_revision)
            done = await self._store.commit([compare, unchanged(controller)], changes)
            # If the compare fails, another controller is in charge.
            if done.succeeded:
                await self._deletions_cache.wait_for_revision(done.revision)

    async def grow(
        self, name: str, partitions: int, replicas: Sequence[tuple[int, ...]] = ()
    ) -> Topic:
        """Add empty partitions to a topic, with the brokers that are requested for each."""

        def grown(topic: Topic) -> Topic:
            if partitions <= topic.partitions:
                raise InvalidPartitionsError(
                    f"The topic {name} currently has {topic.partitions} partition(s);"
                    f" {partitions} would not be an increase."
                )
            added = dict(zip(range(topic.partitions, partitions), replicas, strict=False))
            return replace(topic, partitions=partitions, replicas={**topic.replicas, **added})

        return await self._update(name, grown)

    async def request_replicas(self, name: str, topic_id: bytes, replicas: Replicas) -> Topic:
        """Request brokers for partitions of a topic, in place of those requested before."""

        def requested(topic: Topic) -> Topic:
            if topic.id != topic_id:
                raise UnknownTopicIdError(f"topic {name!r} was deleted and created again")
            return replace(topic, replicas={**topic.replicas, **replicas})

        return await self._update(name, requested)

    async def set_configs(
        self, name: str, change: Callable[[Mapping[str, str]], Mapping[str, str]]
    ) -> Topic:
        """Change the explicit configs of a topic; `change` is called again after a conflict."""
        return await self._update(
            name, lambda topic: replace(topic, configs=dict(change(topic.configs)))
        )

    async def _update(self, name: str, change: Callable[[Topic], Topic]) -> Topic:
        async with time_limit(f"topic {name!r} was not changed", self._timeout_ms):
            while True:
                entry, before = await self._read(name)
                after = change(before)
                if after == before:
                    return before
                after = replace(after, version=before.version + 1)
                done = await self._store.commit(
                    [unchanged(entry)], [Put(entry.key, encode_topic(after))]
                )
                if done.succeeded:
                    await self._configs_cache.wait_for_revision(done.revision)
                    return replace(after, mod_revision=done.revision)

    async def read(self, name: str) -> Topic | None:
        """Read a topic from the store: the cached one may be outdated."""
        entry = await self._store.get(keys.topic_config(name))
        return decode_topic(entry) if entry else None

    async def _read(self, name: str) -> tuple[Entry, Topic]:
        """Read a topic from the store."""
        entry = await self._store.get(keys.topic_config(name)) if names.is_legal(name) else None
        if entry is None:
            raise UnknownTopicError
        return entry, decode_topic(entry)

    async def _wait_until_emptied(self, tombstone: Entry) -> None:
        """Wait until the objects of a deleted topic are deleted."""
        await self._deletions_cache.wait_for_revision(tombstone.mod_revision)
        name = decode_topic(tombstone).name
        while name in self._deletions:
            await self._deletions_cache.wait_for_change()

    # --- watch callbacks ------------------------------------------------------------------------

    def _config_changed(self, key: str, entry: Entry | None) -> None:
        parsed = keys.parse(key)
        assert isinstance(parsed, keys.TopicConfigKey), key
        before = self._topics.get(parsed.topic)
        after = _decode_or_keep(entry, before)
        if before and after and before.id != after.id:
            self._replace(before, None)
            before = None
        if before != after:
            self._replace(before, after)

    def _replace(self, before: Topic | None, after: Topic | None) -> None:
        if before:
            del self._topics[before.name]
            del self._by_id[before.id]
        if after:
            self._topics[after.name] = after
            self._by_id[after.id] = after
        for listener in self._listeners:
            try:
                listener(before, after)
            except Exception:
                # A failing listener must not stop the watch.
                logger.exception("topic listener failed", before=before, after=after)

    def _deletion_changed(self, key: str, entry: Entry | None) -> None:
        name = key.removeprefix(keys.DELETIONS)
        before = self._deletions.pop(name, None) or self._retired.pop(name, None)
        tombstone = _decode_or_keep(entry, before)
        if tombstone:
            (self._retired if tombstone.emptied_ms else self._deletions)[name] = tombstone
        for listener in self._deletion_listeners:
            listener()


def _is_config(key: str) -> bool:
    # Called for every key of every topic; most are partition states.
    return key.endswith("/config") and isinstance(keys.parse(key), keys.TopicConfigKey)


def _decode_or_keep(entry: Entry | None, before: Topic | None) -> Topic | None:
    """Decode a topic; if that fails, return the previous value."""
    if entry is None:
        return None
    try:
        return decode_topic(entry)
    except DamagedObjectError as error:
        logger.error("topic record damaged", key=entry.key, reason=error.reason)
        return before
