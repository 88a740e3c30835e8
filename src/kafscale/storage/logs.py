"""All logs that this broker serves, by topic and partition; and how topics come and go.

A topic that has just been created has no objects, because its name was free only after those of an
older topic were gone: its logs begin empty, at once. Deleting a topic closes its logs first, waits
for segments that are being made, and then removes everything under its prefix.
"""

from collections.abc import Iterator

from kafscale.errors import UnknownTopicError
from kafscale.observability.logging import get_logger
from kafscale.storage import layout
from kafscale.storage.log import PartitionLog, Wal
from kafscale.storage.objects.base import ObjectStore
from kafscale.storage.opening import Opener, TopicToOpen
from kafscale.storage.reader import LogReader
from kafscale.storage.settings import LogSettings

log = get_logger(__name__)


class LogDirectory:
    """The logs of all topics."""

    def __init__(
        self, store: ObjectStore, namespace: str, opener: Opener, reader: LogReader
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._opener = opener
        self._reader = reader
        self._by_topic: dict[str, list[PartitionLog]] = {}
        self._by_id: dict[bytes, list[PartitionLog]] = {}
        self._wal: Wal | None = None

    def __iter__(self) -> Iterator[PartitionLog]:
        return (partition for logs in list(self._by_topic.values()) for partition in logs)

    def find(self, topic: str, partition: int) -> PartitionLog:
        logs = self._by_topic.get(topic, ())
        if not 0 <= partition < len(logs):
            raise UnknownTopicError(f"there is no partition {partition} of topic {topic!r}")
        return logs[partition]

    def find_by_id(self, topic_id: bytes, partition: int) -> PartitionLog | None:
        logs = self._by_id.get(topic_id, ())
        return logs[partition] if 0 <= partition < len(logs) else None

    def of_topic(self, topic: str) -> list[PartitionLog]:
        return self._by_topic.get(topic, [])

    # --- coming and going ---------------------------------------------------------------------

    async def open(self, topic: TopicToOpen, now_ms: int) -> None:
        """Open a topic that has a past."""
        self._add(topic, await self._opener.open(topic, now_ms))

    def start(self, wal: Wal) -> None:
        """Take appends from now on: everything that the past left is recovered."""
        self._wal = wal
        for partition in self:
            partition.lead(wal)

    def create(self, topic: TopicToOpen) -> None:
        """Begin a topic, or the partitions that it has got in addition."""
        existing = self._by_topic.get(topic.name, [])
        numbers = range(len(existing), topic.partition_count)
        self._add(topic, existing + [self._opener.empty(topic, number) for number in numbers])

    def configure(self, topic: str, settings: LogSettings) -> None:
        for partition in self.of_topic(topic):
            partition.settings = settings

    def close(self, topic: str) -> None:
        """Stop serving a topic."""
        for partition in self._by_topic.pop(topic, []):
            partition.close()
            self._by_id.pop(partition.topic_id, None)

    async def delete_objects(self, topic: str, closed: list[PartitionLog]) -> int:
        """Remove every object of a topic that is closed; return how many there were."""
        for partition in closed:
            async with partition.rolling:
                assert partition.closed
        prefix = layout.topic_prefix(self._namespace, topic)
        count = 0
        async for chunk in self._store.list(prefix):
            await self._store.delete([item.key for item in chunk])
            count += len(chunk)
        self._reader.forget(prefix)
        log.info("topic objects deleted", topic=topic, count=count)
        return count

    def _add(self, topic: TopicToOpen, logs: list[PartitionLog]) -> None:
        if self._wal is not None:
            for partition in logs:
                partition.lead(self._wal)
        self._by_topic[topic.name] = logs
        self._by_id[topic.id] = logs
