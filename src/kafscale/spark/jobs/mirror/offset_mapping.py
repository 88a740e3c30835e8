"""Which record of a source became which record of a target, as the target itself tells.

Every record that a mirror writes says in a header where it is from: the cluster's id, the topic,
the partition and the offset. So the offsets of both sides are mapped onto each other exactly,
whatever lies in between: gaps that compaction or transactions have left, records of others. How far
a mirror has come is the last such header of a partition.

Beside that a mirror commits, as a consumer group of the target, up to where it has read: for
targets whose records have been deleted since, and for stretches that left nothing to write. It is
believed only as long as the target is not shorter than it was then.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from confluent_kafka import KafkaError, TopicPartition

from kafscale.errors import OperatingError
from kafscale.spark.jobs.mirror.cluster import ANSWER_S_MAX, Cluster, asked, explained, problem

MIRROR_HEADER: Final = "kafscale.mirror"
POLL_S_MAX: Final = 30.0
PROBE_WAIT_MS: Final = 10
STRETCH_FIRST: Final = 500
STRETCH_GROWTH: Final = 4


class Origin(msgspec.Struct, frozen=True):
    """Where a record is from."""

    cluster_id: str
    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.cluster_id}/{self.topic}/{self.partition}/{self.offset}"

    @classmethod
    def parse(cls, text: str) -> "Origin | None":
        """The origin that a header tells of, if it does.

        >>> Origin.parse(str(Origin("MkU3", "orders", 3, 17)))
        Origin(cluster_id='MkU3', topic='orders', partition=3, offset=17)
        """
        fields = text.rsplit("/", 3)
        if len(fields) < 4 or not (fields[2].isdecimal() and fields[3].isdecimal()):
            return None
        return cls(fields[0], fields[1], int(fields[2]), int(fields[3]))

    @classmethod
    def last_of(cls, headers: Sequence[tuple[str, bytes | None]] | None) -> "Origin | None":
        """Where a record was before it came to where it is."""
        texts = [value for name, value in headers or () if name == MIRROR_HEADER and value]
        return cls.parse(texts[-1].decode("utf-8", "replace")) if texts else None


def bounds(cluster: Cluster, consumer: Any, topic: str, partition: int) -> tuple[int, int]:
    """Where a partition begins, and where it ends."""
    place = TopicPartition(topic, partition)
    first, end = asked(cluster, lambda: consumer.get_watermark_offsets(place, timeout=ANSWER_S_MAX))
    return int(first), int(end)


class Reader:
    """Reads single stretches of the partitions of a target."""

    def __init__(self, cluster: Cluster, source_id: str) -> None:
        self._cluster = cluster
        self._source_id = source_id
        self._consumer = cluster.consumer(source_id, wait_ms=PROBE_WAIT_MS)

    def close(self) -> None:
        self._consumer.close()

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Where a partition begins, and where it ends."""
        return bounds(self._cluster, self._consumer, topic, partition)

    def next_offset(self, source: tuple[str, int], target: tuple[str, int]) -> int | None:
        """From which offset of the source on the target lacks records; None if it has none."""
        first, end = self.bounds(*target)
        since, position = self._committed(target, end)
        lowest = max(first, since)
        above, stretch = end, STRETCH_FIRST
        while above > lowest:
            below = max(lowest, above - stretch)
            for message in reversed(self._between(target, below, above)):
                origin = Origin.last_of(message.headers())
                if origin is not None and self._is_of(origin, source):
                    return max(origin.offset + 1, position or 0)
            above, stretch = below, stretch * STRETCH_GROWTH
        return position

    def translated(self, source: tuple[str, int], target: tuple[str, int], offset: int) -> int:
        """The offset in the target of the first record that is not before one of the source."""
        low, high = self.bounds(*target)
        first, origin = self._first_from(source, target, low, high)
        # Most often a partition is mirrored without gaps, and the place can be reckoned.
        middle = first + offset - origin.offset if origin is not None else low
        while low < high:
            middle = min(max(middle, low), high - 1)
            place, origin = self._first_from(source, target, middle, high)
            if origin is not None and origin.offset < offset:
                low = place + 1
            else:
                high = middle
                if origin is not None and origin.offset == offset:
                    return place
            middle = (low + high) // 2
        return low

    def commit(self, target: tuple[str, int], end_offset: int, position: Origin) -> None:
        """Note up to where the source has been read, for a target that ends at an offset."""
        place = TopicPartition(*target, end_offset, metadata=str(position))
        asked(self._cluster, lambda: self._consumer.commit(offsets=[place], asynchronous=False))

    def _committed(self, target: tuple[str, int], end: int) -> tuple[int, int | None]:
        """Where the target ended at the last commit, and up to where the source was read then."""

        def ask() -> Any:
            (found,) = self._consumer.committed([TopicPartition(*target)], timeout=ANSWER_S_MAX)
            if found.error is not None:
                raise problem(self._cluster, found.error)
            return found

        found = asked(self._cluster, ask)
        origin = Origin.parse(found.metadata or "")
        if origin is None or not 0 <= found.offset <= end:
            return 0, None
        return int(found.offset), origin.offset

    def _is_of(self, origin: Origin, source: tuple[str, int]) -> bool:
        return (origin.cluster_id, origin.topic, origin.partition) == (self._source_id, *source)

    def _first_from(
        self, source: tuple[str, int], target: tuple[str, int], low: int, high: int
    ) -> tuple[int, Origin | None]:
        """The first record of the source in a stretch of the target."""
        while low < high:
            messages = self._between(target, low, min(low + STRETCH_FIRST, high), count_max=1)
            for message in messages:
                origin = Origin.last_of(message.headers())
                if origin is not None and self._is_of(origin, source):
                    return message.offset(), origin
            low = messages[-1].offset() + 1 if messages else min(low + STRETCH_FIRST, high)
        return high, None

    def _between(
        self, target: tuple[str, int], low: int, high: int, count_max: int | None = None
    ) -> list[Any]:
        """The records of a stretch, or the first of them."""
        found: list[Any] = []
        with explained(self._cluster):
            self._consumer.assign([TopicPartition(*target, low)])
        try:
            while count_max is None or len(found) < count_max:
                message = self._consumer.poll(POLL_S_MAX)
                if message is None:
                    raise OperatingError(f"the cluster at {self._cluster.bootstrap} is silent")
                if (error := message.error()) is not None:
                    if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name.
                        break
                    raise problem(self._cluster, error)
                if message.offset() < high:
                    found.append(message)
                if message.offset() >= high - 1:
                    break
        finally:
            self._consumer.unassign()
        return found
