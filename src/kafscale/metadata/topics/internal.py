"""`InternalTopics`: topics that clients can list and read, but whose records are kept elsewhere.

`__consumer_offsets` shows the groups and offsets of the metadata store. As in Kafka it exists from
when it is first needed, and then stays: the broker that stores the first group declares it.

Invariants: an internal topic has one record, with an id of its own, that all brokers see; it is
written once and never changed. It has no assignments, logs or objects as a topic: the key of its
record is not among those of topics, so that nothing that handles topics meets it by accident. A
topic of the same name that a client created in another way (a copy, a restore) comes first.
"""

import asyncio
import uuid
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from kafscale.errors import DamagedObjectError, OperatingError
from kafscale.metadata.cluster.watch_cache import RETRY_MS, WatchCache
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import SHARD_COUNT, SHARDS_TOPIC, Topic
from kafscale.metadata.schema.topic_codec import decode_topic, encode_topic
from kafscale.metadata.store.base import Entry, MetadataStore, Put, absent
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

PARTITIONS: Final[Mapping[str, int]] = {SHARDS_TOPIC: SHARD_COUNT}
"""The internal topics that there can be, with their partitions."""

CONFIGS: Final[Mapping[str, str]] = {
    "cleanup.policy": "compact",
    "compression.type": "producer",
    "segment.bytes": "104857600",
}
"""What Kafka sets on its internal topics."""


class InternalTopics:
    """The internal topics of the cluster, kept current by a watch."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._listeners: list[Callable[[None, Topic], None]] = []
        self._topics: dict[str, Topic] = {}
        self._cache = WatchCache(store, keys.INTERNAL_TOPICS, self._changed)
        self._declaring: dict[str, asyncio.Task[None]] = {}
        self.topics: Mapping[str, Topic] = MappingProxyType(self._topics)

    @property
    def connected(self) -> bool:
        return self._cache.connected

    async def start(self) -> None:
        await self._cache.start()

    async def close(self) -> None:
        for task in self._declaring.values():
            task.cancel()
        await asyncio.gather(*self._declaring.values(), return_exceptions=True)
        await self._cache.close()

    def find_by_id(self, topic_id: bytes) -> Topic | None:
        return next((topic for topic in self._topics.values() if topic.id == topic_id), None)

    def subscribe(self, listener: Callable[[None, Topic], None]) -> None:
        """Call `listener`, like one of topics, when an internal topic begins to exist."""
        self._listeners.append(listener)

    def declare(self, name: str, now_ms: int) -> None:
        """Make an internal topic exist, soon."""
        if name not in self._topics and name not in self._declaring:
            task = asyncio.get_running_loop().create_task(self._declare(name, now_ms))
            self._declaring[name] = task

    async def wait_declared(self, name: str, now_ms: int) -> None:
        """Make an internal topic exist, and wait until it is visible here."""
        self.declare(name, now_ms)
        while name not in self._topics:
            await self._cache.wait_for_change()

    async def _declare(self, name: str, now_ms: int) -> None:
        topic = Topic(
            name=name,
            id=uuid.uuid4().bytes,
            partitions=PARTITIONS[name],
            configs=dict(CONFIGS),
            created_ms=now_ms,
        )
        try:
            while not await self._try_declare(topic):
                pass
        finally:
            del self._declaring[name]

    async def _try_declare(self, topic: Topic) -> bool:
        key = keys.internal_topic(topic.name)
        try:
            # If the compare fails, another broker was first.
            await self._store.commit([absent(key)], [Put(key, encode_topic(topic))])
        except OperatingError as error:
            logger.warning("internal topic not declared yet", topic=topic.name, reason=str(error))
            await asyncio.sleep(RETRY_MS / 1000)
            return False
        return True

    def _changed(self, key: str, entry: Entry | None) -> None:
        name = key.removeprefix(keys.INTERNAL_TOPICS)
        if entry is None or name not in PARTITIONS:
            self._topics.pop(name, None)
            return
        try:
            self._topics[name] = decode_topic(entry)
        except DamagedObjectError as error:
            logger.error("internal topic damaged", key=error.key, reason=error.reason)
            return
        for listener in self._listeners:
            listener(None, self._topics[name])
