"""Copying some partitions from one cluster to another, from where the target ends on.

The laws: a record is written to the partition of the same number, with its key, value, headers and
timestamp, and a header that says where it is from. A pass begins where the target tells (see
`mirror_mapping`) and ends where the source ended when the pass began. Of a partition, records are
written in order by an idempotent producer; what a pass that was killed has left is found by the
next one. Two mirrors of the same topics at the same time would both write: that is for whoever
starts them to avoid.

Records go through Python one by one here. Any cluster can be mirrored, of any version and behind
any kind of security; that is worth more than speed.
"""

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, TopicPartition

from kafscale.errors import InvalidRequestError, OperatingError
from kafscale.spark.jobs.mirror.cluster import Cluster, explained, problem
from kafscale.spark.jobs.mirror.offset_mapping import (
    MIRROR_HEADER,
    POLL_S_MAX,
    Origin,
    Reader,
    bounds,
)

CHUNK_COUNT_MAX: Final = 500
CHUNK_S_MAX: Final = 0.1
FLUSH_S_MAX: Final = 310.0
"""Longer than librdkafka tries to deliver a record."""

FULL_S: Final = 0.1


class Line(msgspec.Struct, frozen=True):
    """A partition of the source, and the topic that it is copied to."""

    topic: str
    target: str
    partition: int
    position: int | None = None
    """Up to where an earlier pass of the same mirror has read."""


class MirrorItem(msgspec.Struct, frozen=True):
    """The partitions of one task."""

    source: Cluster
    target: Cluster
    source_id: str
    target_id: str
    lines: tuple[Line, ...]
    codec: str


class Mirrored(msgspec.Struct):
    """What became of a partition in one pass."""

    topic: str
    target: str
    partition: int
    position: int
    """Up to where the source was read."""
    record_count: int = 0
    size_bytes: int = 0
    lost_count: int = 0
    """Offsets that the source no longer had when they were due."""
    returned_count: int = 0
    """Records that had come from the target, and were not sent back."""
    newest_ms: int | None = None
    """The time of the newest record that was copied."""


def mirror_partitions(
    item: MirrorItem, step: Callable[[str], None] = lambda _: None
) -> list[Mirrored]:
    """Copy what is new; `step` is told what was done, for tests that stop there."""
    reader = Reader(item.target, item.source_id)
    consumer = item.source.consumer("source")
    try:
        copy = _Pass(item, reader, consumer)
        step("opened")
        producer = item.target.producer(item.codec)
        try:
            copy.run(producer, step)
        finally:
            # Another attempt may begin at once: nothing of this one shall arrive after it.
            producer.purge(in_queue=True, in_flight=False)
            producer.flush(FLUSH_S_MAX)
        step("flushed")
        copy.commit()
        step("committed")
        return copy.results
    finally:
        consumer.close()
        reader.close()


class _Pass:
    """One pass over the partitions of a task."""

    def __init__(self, item: MirrorItem, reader: Reader, consumer: Any) -> None:
        self._item = item
        self._reader = reader
        self._consumer = consumer
        self._failure: KafkaError | None = None
        self._ends: dict[tuple[str, int], int] = {}
        self._results: dict[tuple[str, int], Mirrored] = {}
        for line in item.lines:
            self._begin(line)

    @property
    def results(self) -> list[Mirrored]:
        return list(self._results.values())

    def _begin(self, line: Line) -> None:
        place = (line.topic, line.partition)
        first, end = bounds(self._item.source, self._consumer, *place)
        due = self._reader.next_offset(place, (line.target, line.partition))
        due = max(due or 0, line.position or 0)
        if due > end:
            raise InvalidRequestError(
                f"{line.topic}/{line.partition} ends at {end}, but was mirrored up to {due}:"
                " it was deleted and created anew; mirror it under another name"
            )
        start = max(due, first)
        self._ends[place] = end
        self._results[place] = Mirrored(
            line.topic, line.target, line.partition, start, lost_count=start - due if due else 0
        )

    def run(self, producer: Any, step: Callable[[str], None]) -> None:
        waiting = {
            place for place, one in self._results.items() if one.position < self._ends[place]
        }
        with explained(self._item.source):
            self._consumer.assign(
                [TopicPartition(*place, self._results[place].position) for place in waiting]
            )
        silent_since = time.monotonic()
        while waiting:
            # It waits for as many as it is asked for, so it must not wait for long.
            messages = self._consumer.consume(CHUNK_COUNT_MAX, CHUNK_S_MAX)
            if messages:
                silent_since = time.monotonic()
            elif time.monotonic() - silent_since > POLL_S_MAX:
                raise OperatingError(f"the cluster at {self._item.source.bootstrap} is silent")
            for message in messages:
                place = (message.topic(), message.partition())
                result = self._results[place]
                if message.error() is not None:
                    # The end that readers may see, before which a transaction may be open.
                    self._check(message.error())
                    result.position = max(result.position, message.offset())
                    waiting.discard(place)
                elif place in waiting and message.offset() < self._ends[place]:
                    self._copy(producer, result, message)
                if result.position >= self._ends[place]:
                    waiting.discard(place)
            producer.poll(0)
            self._check_delivery()
            step("produced")
        producer.flush(FLUSH_S_MAX)
        self._check_delivery()

    def commit(self) -> None:
        """Note how far the source was read, where that says more than the target does."""
        for place, one in self._results.items():
            target = (one.target, one.partition)
            position = Origin(self._item.source_id, *place, one.position)
            _, end = self._reader.bounds(*target)
            self._reader.commit(target, end, position)

    def _copy(self, producer: Any, result: Mirrored, message: Any) -> None:
        headers = message.headers() or []
        result.position = message.offset() + 1
        before = Origin.last_of(headers)
        if before is not None and (before.cluster_id, before.topic) == (
            self._item.target_id,
            result.target,
        ):
            result.returned_count += 1
            return
        origin = Origin(
            self._item.source_id, message.topic(), message.partition(), message.offset()
        )
        kind, timestamp_ms = message.timestamp()
        times = {} if kind == TIMESTAMP_NOT_AVAILABLE else {"timestamp": timestamp_ms}
        while True:
            try:
                producer.produce(
                    result.target,
                    key=message.key(),
                    value=message.value(),
                    partition=result.partition,
                    headers=[*headers, (MIRROR_HEADER, str(origin).encode())],
                    on_delivery=self._on_delivery,
                    **times,
                )
                break
            except BufferError:
                producer.poll(FULL_S)
        result.record_count += 1
        result.size_bytes += len(message)
        if times:
            result.newest_ms = max(result.newest_ms or 0, timestamp_ms)

    def _on_delivery(self, error: KafkaError | None, _message: Any) -> None:
        if error is not None and self._failure is None:
            self._failure = error

    def _check_delivery(self) -> None:
        if self._failure is not None:
            raise problem(self._item.target, self._failure)

    def _check(self, error: KafkaError) -> None:
        """Raise unless a partition has only come to its end."""
        if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name.
            raise problem(self._item.source, error)
