"""`TopicCache`: topics and pending deletions, kept current by watches.

Listeners are called once per change of a topic, after the cache has it, whichever broker made the
change. A topic that was deleted and created again is reported as a deletion and a creation. A
record that cannot be decoded is logged and ignored. `catalog` changes topics.
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
"""Called with the topic before and after a change; None if it does not exist."""

_log = get_logger(__name__)


class TopicCache:
    """All topics by name and id, and deleted topics whose objects are not all removed."""

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
            except Exception:  # noqa: BLE001 - logged.
                # A failing listener must not stop the watch.
                _log.exception("topic listener failed", before=before, after=after)

    def _deletion_changed(self, key: str, entry: Entry | None) -> None:
        name = key.removeprefix(keys.DELETIONS)
        deletion = _decode_or_keep(entry, self._deletions.get(name))
        if deletion:
            self._deletions[name] = deletion
        else:
            self._deletions.pop(name, None)
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
        _log.error("topic record damaged", key=entry.key, reason=error.reason)
        return before
