"""The logs that this broker serves, by topic and partition.

Other partitions of the same topics are served by other brokers.
"""

from collections.abc import Iterator

from kafscale.storage.log.config import LogSettings
from kafscale.storage.log.partition_log import PartitionLog


class LogDirectory:
    """The logs that this broker serves."""

    def __init__(self) -> None:
        self._by_topic: dict[str, dict[int, PartitionLog]] = {}
        self._by_id: dict[tuple[bytes, int], PartitionLog] = {}

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(list(self._by_id.values()))

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        logs = self._by_topic.get(topic)
        return None if logs is None else logs.get(partition)

    def find_by_id(self, topic_id: bytes, partition: int) -> PartitionLog | None:
        return self._by_id.get((topic_id, partition))

    def of_topic(self, topic: str) -> list[PartitionLog]:
        return list(self._by_topic.get(topic, {}).values())

    # --- adding and removing --------------------------------------------------------------------

    def add(self, log: PartitionLog) -> None:
        """Start serving a log."""
        logs = self._by_topic.setdefault(log.topic, {})
        assert log.partition not in logs, "the log is already open"
        logs[log.partition] = log
        self._by_id[log.topic_id, log.partition] = log

    def discard(self, log: PartitionLog) -> None:
        """Stop serving a log; does nothing if it is not served."""
        if self.find_by_id(log.topic_id, log.partition) is not log:
            return
        del self._by_id[log.topic_id, log.partition]
        logs = self._by_topic[log.topic]
        del logs[log.partition]
        if not logs:
            del self._by_topic[log.topic]

    def configure(self, topic: str, settings: LogSettings) -> None:
        for log in self.of_topic(topic):
            log.settings = settings
