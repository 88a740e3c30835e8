"""The logs that this broker serves, by topic and partition; a topic's others are served elsewhere.

Deleting a topic closes its logs first, waits for segments that are being made, and then removes
everything under its prefix.
"""

from collections.abc import Iterator

from kafscale.errors import UnknownTopicError
from kafscale.observability.logging import get_logger
from kafscale.storage.formats import object_keys
from kafscale.storage.log.config import LogSettings
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.read.log_reader import LogReader

log = get_logger(__name__)


class LogDirectory:
    """The logs that are served here."""

    def __init__(self, store: ObjectStore, namespace: str, reader: LogReader) -> None:
        self._store = store
        self._namespace = namespace
        self._reader = reader
        self._by_topic: dict[str, dict[int, PartitionLog]] = {}
        self._by_id: dict[tuple[bytes, int], PartitionLog] = {}

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(list(self._by_id.values()))

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        logs = self._by_topic.get(topic)
        return None if logs is None else logs.get(partition)

    def find(self, topic: str, partition: int) -> PartitionLog:
        found = self.get(topic, partition)
        if found is None:
            raise UnknownTopicError(f"partition {partition} of topic {topic!r} is not served here")
        return found

    def find_by_id(self, topic_id: bytes, partition: int) -> PartitionLog | None:
        return self._by_id.get((topic_id, partition))

    def of_topic(self, topic: str) -> list[PartitionLog]:
        return list(self._by_topic.get(topic, {}).values())

    # --- coming and going ---------------------------------------------------------------------

    def add(self, served: PartitionLog) -> None:
        """Serve a log."""
        logs = self._by_topic.setdefault(served.topic, {})
        assert served.partition not in logs, "a log is opened once"
        logs[served.partition] = served
        self._by_id[served.topic_id, served.partition] = served

    def discard(self, served: PartitionLog) -> None:
        """Serve a log no longer, if it is served at all."""
        if self.find_by_id(served.topic_id, served.partition) is not served:
            return
        del self._by_id[served.topic_id, served.partition]
        logs = self._by_topic[served.topic]
        del logs[served.partition]
        if not logs:
            del self._by_topic[served.topic]

    def configure(self, topic: str, settings: LogSettings) -> None:
        for served in self.of_topic(topic):
            served.settings = settings

    # --- deleting -----------------------------------------------------------------------------

    def close(self, topic: str) -> list[PartitionLog]:
        """Stop serving a topic that is deleted; return the logs that were served."""
        closed = self.of_topic(topic)
        for served in closed:
            served.close(deleted=True)
            self.discard(served)
        return closed

    async def delete_objects(self, topic: str, closed: list[PartitionLog]) -> int:
        """Remove every object of a topic that is closed; return how many there were."""
        for served in closed:
            async with served.rolling:
                assert served.closed
        prefix = object_keys.topic_prefix(self._namespace, topic)
        count = 0
        async for chunk in self._store.list(prefix):
            await self._store.delete([item.key for item in chunk])
            count += len(chunk)
        self._reader.forget(prefix)
        log.info("topic objects deleted", topic=topic, count=count)
        return count
