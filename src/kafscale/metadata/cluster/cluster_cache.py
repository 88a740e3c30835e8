"""`ClusterCache`: live brokers, controller and assignments, kept current by watches.

Reads do not wait. Listeners are called after every change. Cached state may be outdated: a write
that depends on it needs a compare. A record that cannot be decoded is logged and treated as absent.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from msgspec.structs import replace

from kafscale.aio.events import Notifier
from kafscale.errors import DamagedObjectError
from kafscale.metadata.cluster.watch_cache import WatchCache
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_assignment, decode_broker
from kafscale.metadata.schema.model import NO_BROKER, Assignment, BrokerInfo
from kafscale.metadata.store.base import Entry, MetadataStore
from kafscale.observability.logging import get_logger

_NO_ASSIGNMENTS: Final[Mapping[int, Assignment]] = MappingProxyType({})

logger = get_logger(__name__)

Decoded = TypeVar("Decoded")


class ClusterCache:
    """Brokers, controller and assignments."""

    def __init__(self, store: MetadataStore) -> None:
        self._brokers: dict[int, BrokerInfo] = {}
        self._by_topic: dict[str, dict[int, Assignment]] = defaultdict(dict)
        self._listeners: list[Callable[[], None]] = []
        self._changes = Notifier()
        self.brokers: Mapping[int, BrokerInfo] = MappingProxyType(self._brokers)
        self.controller: Entry | None = None
        """The entry that names the controller; writes of the controller compare it."""
        self._caches = (
            WatchCache(store, keys.BROKERS, self._broker_changed),
            WatchCache(store, keys.CONTROLLER, self._controller_changed),
            WatchCache(store, keys.ASSIGNMENTS, self._assignment_changed),
        )

    @property
    def connected(self) -> bool:
        """True while watches work; if false, the cache may be outdated."""
        return all(cache.connected for cache in self._caches)

    @property
    def controller_id(self) -> int:
        """The id of the controller, or `NO_BROKER`."""
        if self.controller is None or not self.controller.value.isdigit():
            return NO_BROKER
        return int(self.controller.value)

    @property
    def revision(self) -> int:
        """The newest revision of the store that the cache shows."""
        return max(cache.revision for cache in self._caches)

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds; it is evaluated now and after every change."""
        await self._changes.wait_for(condition)

    async def start(self) -> None:
        for cache in self._caches:
            await cache.start()

    async def close(self) -> None:
        for cache in self._caches:
            await cache.close()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every change; it must not block."""
        self._listeners.append(listener)

    def assignments(self, topic: str) -> Mapping[int, Assignment]:
        """The assignments of a topic by partition."""
        return self._by_topic.get(topic, _NO_ASSIGNMENTS)

    def all_assignments(self) -> Iterator[Assignment]:
        """All assignments, of partitions and of shards; changes during iteration may be missed."""
        for topic in self.assigned_topics():
            yield from list(self.assignments(topic).values())

    def assigned_topics(self) -> list[str]:
        return list(self._by_topic)

    def leader(self, topic: str, partition: int) -> tuple[int, int]:
        """The owner of a partition, or `NO_BROKER`, and the leader epoch, or -1."""
        assignment = self._by_topic.get(topic, _NO_ASSIGNMENTS).get(partition)
        if assignment is None:
            return NO_BROKER, -1
        if not assignment.is_owned_by(self._brokers.get(assignment.broker_id)):
            return NO_BROKER, assignment.leader_epoch
        return assignment.broker_id, assignment.leader_epoch

    # --- watch callbacks ------------------------------------------------------------------------

    def _broker_changed(self, key: str, entry: Entry | None) -> None:
        parsed = keys.parse(key)
        if not isinstance(parsed, keys.BrokerKey):
            return
        broker = _decode_or_none(decode_broker, entry)
        if broker is None:
            self._brokers.pop(parsed.broker_id, None)
        else:
            before = self._brokers.get(broker.id)
            self._brokers[broker.id] = broker
            if before is not None and replace(before, mod_revision=broker.mod_revision) == broker:
                return  # Only the time of its last heartbeat has changed.
        self._notify()

    def _controller_changed(self, key: str, entry: Entry | None) -> None:
        if key == keys.CONTROLLER:
            self.controller = entry
            self._notify()

    def _assignment_changed(self, key: str, entry: Entry | None) -> None:
        parsed = keys.parse(key)
        if not isinstance(parsed, keys.AssignmentKey):
            return
        assignment = _decode_or_none(decode_assignment, entry)
        if assignment is not None:
            self._by_topic[parsed.topic][parsed.partition] = assignment
        else:
            self._by_topic[parsed.topic].pop(parsed.partition, None)
            if not self._by_topic[parsed.topic]:
                del self._by_topic[parsed.topic]
        self._notify()

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()
        self._changes.notify()


def _decode_or_none(decode: Callable[[Entry], Decoded], entry: Entry | None) -> Decoded | None:
    if entry is None:
        return None
    try:
        return decode(entry)
    except DamagedObjectError as error:
        logger.error("cluster record damaged", key=error.key, reason=error.reason)
        return None
