"""Maps offsets of the source to offsets of the target, and translates consumer group offsets.

Every record that a mirror writes has its origin in a header: cluster id, topic, partition and
offset. So the mapping is exact, whatever gaps compaction and transactions have left, and whatever
records other producers have written. The last such header of a partition is the mirror's progress.

In addition, a mirror commits its position in the source, as a consumer group of the target: for
targets whose records were deleted since, and for source ranges without records to write. The commit
is ignored if the target is shorter than it was then.

Invariant of a translation: a group that continues in the target misses no record, and reads no
record again that it had read before its last commit. If the mirror is behind the group, the group
continues at the end of the target. Offsets in the target never move back.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from kafscale.errors import OperatingError, UnknownTopicError
from kafscale.spark.jobs.mirror.cluster import (
    REQUEST_TIMEOUT_S,
    Cluster,
    retry,
    to_error,
    wrap_errors,
)
from kafscale.spark.jobs.mirror.topics import MirrorTopics

MIRROR_HEADER: Final = "kafscale.mirror"
POLL_S_MAX: Final = 30.0
PROBE_WAIT_MS: Final = 10
RANGE_FIRST: Final = 500
"""How many offsets a search reads first."""
RANGE_GROWTH: Final = 4


class Origin(msgspec.Struct, frozen=True):
    """The cluster, topic, partition and offset that a record was copied from."""

    cluster_id: str
    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.cluster_id}/{self.topic}/{self.partition}/{self.offset}"

    @classmethod
    def parse(cls, text: str) -> "Origin | None":
        """Parse the value of the header `MIRROR_HEADER`; None if it is invalid.

        >>> Origin.parse(str(Origin("MkU3", "orders", 3, 17)))
        Origin(cluster_id='MkU3', topic='orders', partition=3, offset=17)
        """
        fields = text.rsplit("/", 3)
        if len(fields) < 4 or not (fields[2].isdecimal() and fields[3].isdecimal()):
            return None
        return cls(fields[0], fields[1], int(fields[2]), int(fields[3]))

    @classmethod
    def last_of(cls, headers: Sequence[tuple[str, bytes | None]] | None) -> "Origin | None":
        """Return the last origin in the headers of a record."""
        texts = [value for name, value in headers or () if name == MIRROR_HEADER and value]
        return cls.parse(texts[-1].decode("utf-8", "replace")) if texts else None


def bounds(cluster: Cluster, consumer: Any, topic: str, partition: int) -> tuple[int, int]:
    """Return the log start offset and the high watermark of a partition."""
    topic_partition = TopicPartition(topic, partition)
    first, end = retry(
        cluster, lambda: consumer.get_watermark_offsets(topic_partition, timeout=REQUEST_TIMEOUT_S)
    )
    return int(first), int(end)


class TargetReader:
    """Reads short ranges of target partitions."""

    def __init__(self, cluster: Cluster, source_id: str) -> None:
        self._cluster = cluster
        self._source_id = source_id
        # The mirror writes without transactions; those of others must not hide its records.
        self._consumer = cluster.consumer(
            source_id, wait_ms=PROBE_WAIT_MS, isolation_level="read_uncommitted"
        )

    def close(self) -> None:
        self._consumer.close()

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Return the log start offset and the high watermark of a partition."""
        return bounds(self._cluster, self._consumer, topic, partition)

    def next_offset(self, source: tuple[str, int], target: tuple[str, int]) -> int | None:
        """Return the first source offset that the target lacks; None if it has no records."""
        first, end = self.bounds(*target)
        since, position = self._committed(target, end)
        lowest = max(first, since)
        above, count = end, RANGE_FIRST
        while above > lowest:
            below = max(lowest, above - count)
            for message in reversed(self._between(target, below, above)):
                origin = Origin.last_of(message.headers())
                if origin is not None and self._is_of(origin, source):
                    return max(origin.offset + 1, position or 0)
            above, count = below, count * RANGE_GROWTH
        return position

    def translate(self, source: tuple[str, int], target: tuple[str, int], offset: int) -> int:
        """Return the target offset of the first record at or after a source offset."""
        low, high = self.bounds(*target)
        first, origin = self._first_from(source, target, low, high)
        # Most partitions are mirrored without gaps: then this guess is exact.
        middle = first + offset - origin.offset if origin is not None else low
        while low < high:
            middle = min(max(middle, low), high - 1)
            position, origin = self._first_from(source, target, middle, high)
            if origin is not None and origin.offset < offset:
                low = position + 1
            else:
                high = middle
                if origin is not None and origin.offset == offset:
                    return position
            middle = (low + high) // 2
        return low

    def commit(self, target: tuple[str, int], end_offset: int, position: Origin) -> None:
        """Commit the position in the source, for a target that ends at an offset."""
        offset = TopicPartition(*target, end_offset, metadata=str(position))
        retry(self._cluster, lambda: self._consumer.commit(offsets=[offset], asynchronous=False))

    def _committed(self, target: tuple[str, int], end: int) -> tuple[int, int | None]:
        """Return the end of the target and the position in the source at the last commit."""

        def request() -> Any:
            (offset,) = self._consumer.committed(
                [TopicPartition(*target)], timeout=REQUEST_TIMEOUT_S
            )
            if offset.error is not None:
                raise to_error(self._cluster, offset.error)
            return offset

        committed = retry(self._cluster, request)
        origin = Origin.parse(committed.metadata or "")
        if origin is None or not 0 <= committed.offset <= end:
            return 0, None
        return int(committed.offset), origin.offset

    def _is_of(self, origin: Origin, source: tuple[str, int]) -> bool:
        return (origin.cluster_id, origin.topic, origin.partition) == (self._source_id, *source)

    def _first_from(
        self, source: tuple[str, int], target: tuple[str, int], low: int, high: int
    ) -> tuple[int, Origin | None]:
        """Return the first record of the source in a range of the target."""
        while low < high:
            messages = self._between(target, low, min(low + RANGE_FIRST, high), count_max=1)
            for message in messages:
                origin = Origin.last_of(message.headers())
                if origin is not None and self._is_of(origin, source):
                    return message.offset(), origin
            low = messages[-1].offset() + 1 if messages else min(low + RANGE_FIRST, high)
        return high, None

    def _between(
        self, target: tuple[str, int], low: int, high: int, count_max: int | None = None
    ) -> list[Any]:
        """Return the records of a range, or the first `count_max` of them."""
        messages: list[Any] = []
        with wrap_errors(self._cluster):
            self._consumer.assign([TopicPartition(*target, low)])
        try:
            while count_max is None or len(messages) < count_max:
                message = self._consumer.poll(POLL_S_MAX)
                if message is None:
                    raise OperatingError(
                        f"the cluster at {self._cluster.bootstrap} sends no records"
                    )
                if (error := message.error()) is not None:
                    if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name.
                        break
                    raise to_error(self._cluster, error)
                if message.offset() < high:
                    messages.append(message)
                if message.offset() >= high - 1:
                    break
        finally:
            self._consumer.unassign()
        return messages


# --- consumer groups ------------------------------------------------------------------------------


class TranslatedOffset(msgspec.Struct, frozen=True):
    """The committed offset of a group in a partition, in source and target."""

    topic: str
    partition: int
    source_offset: int
    target_offset: int
    is_moved: bool
    """Whether it was committed; False if the group was at or after it already."""


def translate_group(
    source: Cluster, target: Cluster, topics: MirrorTopics, group: str, chosen: Collection[str]
) -> list[TranslatedOffset]:
    """Commit in the target what a group has committed in the source, for the chosen topics."""
    source_id, _ = topics.cluster_ids()
    committed = _committed_offsets(source, source.admin(), group)
    topic_partitions = sorted(key for key in committed if key[0] in chosen)
    if not topic_partitions:
        raise UnknownTopicError(f"group {group} has committed no offsets of the mirrored topics")
    admin = target.admin()
    known = _committed_offsets(target, admin, group)
    reader = TargetReader(target, source_id)
    try:
        results = []
        for topic, partition in topic_partitions:
            mirrored = (topics.target_name(topic), partition)
            source_offset = committed[topic, partition]
            offset = reader.translate((topic, partition), mirrored, source_offset)
            is_moved = offset > known.get(mirrored, -1)
            results.append(TranslatedOffset(*mirrored, source_offset, offset, is_moved))
    finally:
        reader.close()
    moved = [
        TopicPartition(one.topic, one.partition, one.target_offset)
        for one in results
        if one.is_moved
    ]
    if moved:
        with wrap_errors(target):
            request = [ConsumerGroupTopicPartitions(group, moved)]
            futures = admin.alter_consumer_group_offsets(request)
            for offset in futures[group].result(REQUEST_TIMEOUT_S).topic_partitions:
                assert offset.error is None, offset.error
    return results


def _committed_offsets(
    cluster: Cluster, admin: AdminClient, group: str
) -> dict[tuple[str, int], int]:
    with wrap_errors(cluster):
        futures = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        offsets = futures[group].result(REQUEST_TIMEOUT_S).topic_partitions
    return {(each.topic, each.partition): each.offset for each in offsets if each.offset >= 0}
