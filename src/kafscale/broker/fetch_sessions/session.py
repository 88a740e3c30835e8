"""One fetch session (KIP-227): what a client wants to be told about, and what it was told.

The laws:

1. An incremental answer leaves a partition out only if it would say nothing new: no records, no
   error, the high watermark and the log start as they were told last.
2. Partitions are read in an order in which those that had records go to the end, so that an
   answer that is full does not always serve the same ones.

A session goes either by names of topics (Fetch v7 to v12) or by their ids (v13 and later). Which
sessions there are, and how requests find theirs, is left to `fetch_sessions`.
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
"""Of a request that begins a session."""
FINAL_EPOCH: Final = -1
"""Of a request without a session, which ends the one that it names."""

_EPOCH_MAX: Final = 2**31 - 1
_NEVER_TOLD: Final = -1

Key = tuple[str | bytes, int]
"""A partition: its topic's name or id, and its index."""


class Wanted:
    """One partition to read, and what its client was told about it last."""

    __slots__ = ("_high_watermark", "_log_start_offset", "key", "name", "request", "topic_id")

    def __init__(self, key: Key, name: str, topic_id: bytes, request: PartitionToFetch) -> None:
        self.key = key
        self.name = name
        """Empty from v13 on."""
        self.topic_id = topic_id
        """Zero before v13."""
        self.request = request
        """Index, offset, size and epochs, as the client said them last."""
        self._high_watermark = _NEVER_TOLD
        self._log_start_offset = _NEVER_TOLD

    def tell(self, result: FetchedPartition) -> bool:
        """Whether the client has to be told, which is then taken as done."""
        news = (
            result.high_watermark != self._high_watermark
            or result.log_start_offset != self._log_start_offset
            or result.error_code != 0
            or result.preferred_read_replica != -1
            or result.diverging_epoch is not None
            or _has_records(result)
        )
        # After an error the partition is told again once it is well, whatever there is to say.
        self._high_watermark = _NEVER_TOLD if result.error_code else result.high_watermark
        self._log_start_offset = result.log_start_offset
        return news


Pair = tuple[Wanted, FetchedPartition]


class Session:
    """What one client wants to be told about, until further notice."""

    __slots__ = ("by_topic_id", "created_ms", "epoch", "id", "partitions", "used_ms")

    def __init__(
        self, id_: int, partitions: dict[Key, Wanted], *, by_topic_id: bool, now_ms: int
    ) -> None:
        self.id = id_
        self.partitions = partitions
        """In the order in which they are to be read."""
        self.by_topic_id = by_topic_id
        self.epoch = INITIAL_EPOCH + 1
        """That of the next request."""
        self.created_ms = now_ms
        self.used_ms = now_ms

    def __len__(self) -> int:
        return len(self.partitions)

    def advance(
        self, topics: Iterable[TopicToFetch], topics_to_forget: Iterable[TopicToForget], now_ms: int
    ) -> None:
        """Take in the changes of the request that was due, and expect the next."""
        for key, wanted in asked(topics, by_topic_id=self.by_topic_id).items():
            known = self.partitions.setdefault(key, wanted)
            known.request = wanted.request
        for topic in topics_to_forget:
            identity = topic.topic_id if self.by_topic_id else topic.name
            for index in topic.partitions:
                self.partitions.pop((identity, index), None)
        self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1
        self.used_ms = now_ms

    def tell(self, pairs: Iterable[Pair]) -> list[Pair]:
        """What of these results the client has to be told."""
        news = []
        for wanted, result in pairs:
            if wanted.tell(result):
                news.append((wanted, result))
                if _has_records(result):
                    self.partitions[wanted.key] = self.partitions.pop(wanted.key)
        return news


def asked(topics: Iterable[TopicToFetch], *, by_topic_id: bool) -> dict[Key, Wanted]:
    """The partitions that a request names; of one that is named twice, the latter."""
    partitions: dict[Key, Wanted] = {}
    for topic in topics:
        identity = topic.topic_id if by_topic_id else topic.name
        for partition in topic.partitions:
            key = (identity, partition.index)
            partitions[key] = Wanted(key, topic.name, topic.topic_id, partition)
    return partitions


def by_topic(pairs: Iterable[Pair]) -> list[FetchedTopic]:
    """The results as an answer has them."""
    topics: dict[str | bytes, FetchedTopic] = {}
    for wanted, result in pairs:
        identity, _ = wanted.key
        topic = topics.get(identity)
        if topic is None:
            topic = topics[identity] = FetchedTopic(wanted.name, wanted.topic_id, [])
        topic.partitions.append(result)
    return list(topics.values())


def _has_records(result: FetchedPartition) -> bool:
    return result.records is not None and any(map(len, result.records))
