"""One fetch session (KIP-227): the partitions a client fetches, and what was last sent of each.

Invariants:

1. An incremental response leaves a partition out only if it would carry nothing new: no records, no
   error, and the high watermark and log start offset that were sent last.
2. Partitions with records move to the end of the read order, so that a size-limited response does
   not always serve the same ones.

A session identifies topics either by name (Fetch v7 to v12) or by id (v13 and later). `cache` holds
the sessions and finds the one of a request.
"""

from collections.abc import Iterable
from typing import Final

from kafscale.protocol.messages.fetch import (
    FetchedPartition,
    FetchedTopic,
    PartitionToFetch,
    TopicToFetch,
    TopicToForget,
)

INITIAL_EPOCH: Final = 0
"""The epoch of a request that begins a session."""
FINAL_EPOCH: Final = -1
"""The epoch of a request without a session, which ends the one that it names."""

_EPOCH_MAX: Final = 2**31 - 1
_NEVER_SENT: Final = -1

Key = tuple[str | bytes, int]
"""A partition: its topic's name or id, and its index."""


class CachedPartition:
    """One partition to fetch, and what was last sent of it (Kafka: CachedPartition)."""

    __slots__ = ("_high_watermark", "_log_start_offset", "key", "name", "request", "topic_id")

    def __init__(self, key: Key, name: str, topic_id: bytes, request: PartitionToFetch) -> None:
        self.key = key
        self.name = name
        """Empty from v13 on."""
        self.topic_id = topic_id
        """Zero before v13."""
        self.request = request
        """Index, offset, size limit and epochs of the last request."""
        self._high_watermark = _NEVER_SENT
        self._log_start_offset = _NEVER_SENT

    def update(self, result: FetchedPartition) -> bool:
        """Whether the response has to carry this result; it is then recorded as sent."""
        is_changed = (
            result.high_watermark != self._high_watermark
            or result.log_start_offset != self._log_start_offset
            or result.error_code != 0
            or result.preferred_read_replica != -1
            or result.diverging_epoch is not None
            or _has_records(result)
        )
        # After an error, the next result without one is always sent.
        self._high_watermark = _NEVER_SENT if result.error_code else result.high_watermark
        self._log_start_offset = result.log_start_offset
        return is_changed


Pair = tuple[CachedPartition, FetchedPartition]


class FetchSession:
    """The partitions that one client fetches incrementally."""

    __slots__ = ("by_topic_id", "created_ms", "epoch", "id", "partitions", "used_ms")

    def __init__(
        self, id_: int, partitions: dict[Key, CachedPartition], *, by_topic_id: bool, now_ms: int
    ) -> None:
        self.id = id_
        self.partitions = partitions
        """In read order."""
        self.by_topic_id = by_topic_id
        self.epoch = INITIAL_EPOCH + 1
        """The epoch of the next request."""
        self.created_ms = now_ms
        self.used_ms = now_ms

    def __len__(self) -> int:
        return len(self.partitions)

    def advance(
        self, topics: Iterable[TopicToFetch], topics_to_forget: Iterable[TopicToForget], now_ms: int
    ) -> None:
        """Apply the changes of the next request, and advance the epoch."""
        for key, requested in requested_partitions(topics, by_topic_id=self.by_topic_id).items():
            cached = self.partitions.setdefault(key, requested)
            cached.request = requested.request
        for topic in topics_to_forget:
            topic_key = topic.topic_id if self.by_topic_id else topic.name
            for index in topic.partitions:
                self.partitions.pop((topic_key, index), None)
        self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1
        self.used_ms = now_ms

    def update(self, pairs: Iterable[Pair]) -> list[Pair]:
        """The results that the response has to carry; they are recorded as sent."""
        changed = []
        for partition, result in pairs:
            if partition.update(result):
                changed.append((partition, result))
                if _has_records(result):
                    self.partitions[partition.key] = self.partitions.pop(partition.key)
        return changed


def requested_partitions(
    topics: Iterable[TopicToFetch], *, by_topic_id: bool
) -> dict[Key, CachedPartition]:
    """The partitions that a request names; the last one of duplicates."""
    partitions: dict[Key, CachedPartition] = {}
    for topic in topics:
        topic_key = topic.topic_id if by_topic_id else topic.name
        for partition in topic.partitions:
            key = (topic_key, partition.index)
            partitions[key] = CachedPartition(key, topic.name, topic.topic_id, partition)
    return partitions


def group_by_topic(pairs: Iterable[Pair]) -> list[FetchedTopic]:
    """The results grouped by topic, as in a response."""
    topics: dict[str | bytes, FetchedTopic] = {}
    for partition, result in pairs:
        topic_key, _ = partition.key
        topic = topics.get(topic_key)
        if topic is None:
            topic = topics[topic_key] = FetchedTopic(partition.name, partition.topic_id, [])
        topic.partitions.append(result)
    return list(topics.values())


def _has_records(result: FetchedPartition) -> bool:
    return result.records is not None and any(map(len, result.records))
