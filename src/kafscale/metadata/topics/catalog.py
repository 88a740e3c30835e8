"""The catalog: which topics there are, as every broker sees it, and the ways to change it.

The laws:

1. Handlers read the catalog without waiting; what they see is kept current by `topic_view`, so a
   topic that any broker changes is soon seen by all. A method that changes something returns when
   the change can be seen here.
2. Every change is one commit with a compare: of two brokers that create one name, one succeeds; of
   two that create different names, both do.
3. Deleting a topic leaves a tombstone in the same commit that removes it. Its name cannot be taken
   again before the tombstone is gone, and that is removed when the last of its objects is: a new
   topic never finds records of the old one.

Removing objects, and judging configurations, is left to others.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from msgspec.structs import replace

from kafscale.errors import (
    InvalidPartitionsError,
    StoreUnavailableError,
    TopicExistsError,
    UnknownTopicError,
)
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import DEFAULT_NAMESPACE, Topic
from kafscale.metadata.schema.topic_codec import decode_topic, encode_topic
from kafscale.metadata.store.base import (
    Delete,
    DeletePrefix,
    Entry,
    MetadataStore,
    Put,
    absent,
    unchanged,
)
from kafscale.metadata.topics import names
from kafscale.metadata.topics.cache import TopicCache, TopicListener

TIMEOUT_MS: Final = 30_000
"""How long a change may take, waiting for an old topic of the same name to be gone included."""


class Catalog:
    """All topics, by name and by id, the deletions under way, and the changes to them."""

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
        self._cache = TopicCache(store)
        self.topics: Mapping[str, Topic] = self._cache.topics
        self.by_id: Mapping[bytes, Topic] = self._cache.by_id
        self.deletions: Mapping[str, Topic] = self._cache.deletions
        """Topics that are deleted, but whose objects may not all be gone yet, by name."""

    @property
    def connected(self) -> bool:
        """Whether the store's changes arrive here; if not, the catalog may be out of date."""
        return self._cache.connected

    @property
    def revision(self) -> int:
        """The revision of the store at which the topics were exactly those that are seen here."""
        return self._cache.configs_cache.revision

    async def start(self) -> None:
        """Read all topics, then follow the store in the background until `close`."""
        await self._cache.start()

    async def close(self) -> None:
        await self._cache.close()

    async def wait_for_revision(self, revision: int) -> None:
        """Wait until the change of a topic that was made at this revision can be seen here."""
        await self._cache.configs_cache.wait_for_revision(revision)

    async def current(self) -> None:
        """Wait until all topics that the store has now can be seen here, as they are there."""
        snapshot = await self._store.range(keys.TOPICS)
        await self.wait_for_revision(
            max((entry.mod_revision for entry in snapshot.entries), default=0)
        )

    def get(self, name: str) -> Topic | None:
        return self.topics.get(name)

    def subscribe(self, listener: TopicListener) -> None:
        """Tell `listener` of every change from now on, once it can be seen; it must not wait.

        Who subscribes before `start` is told of all the topics that there are, too.
        """
        self._cache.subscribe(listener)

    def subscribe_deletions(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever a deletion has begun or is finished."""
        self._cache.subscribe_deletions(listener)

    def check_new(self, name: str, partitions: int) -> None:
        """Raise what `create` would, as far as it can be seen from here (`validate_only`)."""
        names.check(name)
        if partitions < 1:
            raise InvalidPartitionsError(f"a topic has 1 partition or more, not {partitions}")
        if name in self.topics:
            raise TopicExistsError(f"topic {name!r} exists")
        # Names that are alike hurt nobody but readers of metrics, so looking here is enough: two
        # brokers that create such a pair in one moment may.
        names.check_collision(name, self.topics)

    async def create(
        self,
        name: str,
        partitions: int,
        configs: Mapping[str, str],
        now_ms: int,
        topic_id: bytes,
        *,
        timeout_ms: int | None = None,
    ) -> Topic:
        """Create a topic, once no older one of that name is still being deleted."""
        self.check_new(name, partitions)
        topic = Topic(
            name=name,
            id=topic_id,
            partitions=partitions,
            configs=dict(configs),
            created_ms=now_ms,
            namespace=self._namespace,
        )
        key = keys.topic_config(name)
        compares = [absent(key), absent(keys.deletion(name))]
        async with self._limit(f"topic {name!r} is not created yet", timeout_ms):
            while True:
                done = await self._store.commit(compares, [Put(key, encode_topic(topic))])
                if done.succeeded:
                    await self._cache.configs_cache.wait_for_revision(done.revision)
                    return replace(topic, create_revision=done.revision, mod_revision=done.revision)
                if await self._store.get(key):
                    raise TopicExistsError(f"topic {name!r} exists")
                await self._deletion_finished(name)

    async def delete(self, name: str) -> Topic:
        """Delete a topic with its partitions and assignments, and leave a tombstone."""
        async with self._limit(f"topic {name!r} is not deleted yet"):
            while True:
                entry, topic = await self._read(name)
                done = await self._store.commit(
                    [unchanged(entry)],
                    [
                        DeletePrefix(keys.topic(name)),
                        DeletePrefix(keys.assignments(name)),
                        Put(keys.deletion(name), encode_topic(topic)),
                    ],
                )
                if done.succeeded:
                    await self._cache.deletions_cache.wait_for_revision(done.revision)
                    await self._cache.configs_cache.wait_for_revision(done.revision)
                    return topic

    async def is_deleting(self, name: str, topic_id: bytes) -> bool:
        """Whether the store has this tombstone now; what is seen here may be older."""
        entry = await self._store.get(keys.deletion(name))
        return entry is not None and decode_topic(entry).id == topic_id

    async def finish_deletion(self, name: str, topic_id: bytes) -> None:
        """Remove the tombstone, now that the objects are gone; the name is free again."""
        async with self._limit(f"the deletion of topic {name!r} is not finished yet"):
            entry = await self._store.get(keys.deletion(name))
            if entry is None or decode_topic(entry).id != topic_id:
                return
            done = await self._store.commit([unchanged(entry)], [Delete(entry.key)])
            # Where the compare does not hold, another broker has finished the same deletion.
            if done.succeeded:
                await self._cache.deletions_cache.wait_for_revision(done.revision)

    async def grow(self, name: str, partitions: int) -> Topic:
        """Give a topic more partitions; the new ones are empty."""

        def grown(topic: Topic) -> Topic:
            if partitions <= topic.partitions:
                raise InvalidPartitionsError(
                    f"topic {name!r} has {topic.partitions} partitions and can only get more,"
                    f" not {partitions}"
                )
            return replace(topic, partitions=partitions)

        return await self._update(name, grown)

    async def set_configs(
        self, name: str, change: Callable[[Mapping[str, str]], Mapping[str, str]]
    ) -> Topic:
        """Change what is set for a topic; `change` is asked again if another was faster."""
        return await self._update(
            name, lambda topic: replace(topic, configs=dict(change(topic.configs)))
        )

    async def _update(self, name: str, change: Callable[[Topic], Topic]) -> Topic:
        async with self._limit(f"topic {name!r} is not changed yet"):
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
                    await self._cache.configs_cache.wait_for_revision(done.revision)
                    return replace(after, mod_revision=done.revision)

    async def _read(self, name: str) -> tuple[Entry, Topic]:
        """The topic as the store has it now, which may be newer than what is seen here."""
        entry = await self._store.get(keys.topic_config(name)) if names.is_legal(name) else None
        if entry is None:
            raise UnknownTopicError(f"there is no topic {name!r}")
        return entry, decode_topic(entry)

    async def _deletion_finished(self, name: str) -> None:
        tombstone = await self._store.get(keys.deletion(name))
        if tombstone is None:
            return
        cache = self._cache.deletions_cache
        await cache.wait_for_revision(tombstone.mod_revision)
        while tombstone.key in cache.entries:
            await cache.wait_for_change()

    @asynccontextmanager
    async def _limit(self, late: str, timeout_ms: int | None = None) -> AsyncIterator[None]:
        limit_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                yield
        except TimeoutError as error:
            raise StoreUnavailableError(f"{late}, after {limit_ms} ms") from error
