"""The topics and the deletions under way, as this process sees them; read without waiting.

The laws: the view is kept current by watches of the store; listeners are told of every change of a
topic once, after the view shows it, whoever made it, and a topic that was deleted and made again is
told as both. A record that cannot be read is logged and changes nothing. How topics are changed is
left to `catalog`.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kafscale.errors import DamagedObjectError
from kafscale.metadata.cluster.watch_cache import WatchCache
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import Topic
from kafscale.metadata.schema.topic_codec import decode_topic
from kafscale.metadata.store.base import Entry, MetadataStore
from kafscale.observability.logging import get_logger

TopicListener = Callable[[Topic | None, Topic | None], None]
"""Told what a topic was before, and what it is after; None for a topic that is not there."""

_log = get_logger(__name__)


class TopicCache:
    """All topics, by name and by id, and the deleted ones whose objects are not all gone."""

    def __init__(self, store: MetadataStore) -> None:
        self._topics: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._deletions: dict[str, Topic] = {}
        self._listeners: list[TopicListener] = []
        self._deletion_listeners: list[Callable[[], None]] = []
        self.topics: Mapping[str, Topic] = MappingProxyType(self._topics)
        self.by_id: Mapping[bytes, Topic] = MappingProxyType(self._by_id)
        self.deletions: Mapping[str, Topic] = MappingProxyType(self._deletions)
        self.configs_cache = WatchCache(store, keys.TOPICS, self._config_changed, _is_config)
        self.deletions_cache = WatchCache(store, keys.DELETIONS, self._deletion_changed)

    @property
    def connected(self) -> bool:
        return self.configs_cache.connected and self.deletions_cache.connected

    async def start(self) -> None:
        await self.deletions_cache.start()
        await self.configs_cache.start()

    async def close(self) -> None:
        await self.configs_cache.close()
        await self.deletions_cache.close()

    def subscribe(self, listener: TopicListener) -> None:
        self._listeners.append(listener)

    def subscribe_deletions(self, listener: Callable[[], None]) -> None:
        self._deletion_listeners.append(listener)

    def _config_changed(self, key: str, entry: Entry | None) -> None:
        parsed = keys.parse(key)
        assert isinstance(parsed, keys.TopicConfigKey), key
        before = self._topics.get(parsed.topic)
        after = _decoded(entry, before)
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
            except Exception:  # noqa: BLE001 - logged, as any edge does.
                # The watch must go on for everybody else, whatever one listener does.
                _log.exception("topic listener failed", before=before, after=after)

    def _deletion_changed(self, key: str, entry: Entry | None) -> None:
        name = key.removeprefix(keys.DELETIONS)
        deletion = _decoded(entry, self._deletions.get(name))
        if deletion:
            self._deletions[name] = deletion
        else:
            self._deletions.pop(name, None)
        for listener in self._deletion_listeners:
            listener()


def _is_config(key: str) -> bool:
    # Asked for every key of every topic, most of which are states of partitions.
    return key.endswith("/config") and isinstance(keys.parse(key), keys.TopicConfigKey)


def _decoded(entry: Entry | None, before: Topic | None) -> Topic | None:
    """The topic of an entry; what was known before, if the entry cannot be read."""
    if entry is None:
        return None
    try:
        return decode_topic(entry)
    except DamagedObjectError as error:
        _log.error("topic record damaged", key=entry.key, reason=error.reason)
        return before
