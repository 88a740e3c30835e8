"""The task of a mirror: copies some partitions from the end of the target to the end of the source.

Invariants: a record is written to the partition of the same index, with its key, value, headers and
timestamp, and a header with its origin. A pass starts at the progress in the target (see
`offset_mapping`), and ends where the source ended when the pass started. An idempotent producer
writes the records of a partition in order; the next pass finds what a killed pass has written. Two
mirrors of the same topics at the same time would write duplicates: do not start them.

Every record goes through Python. Any cluster, of any version and with any security mechanism, can
be mirrored; that is worth more than speed.
"""

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, TopicPartition

from kafscale.errors import InvalidRequestError, OperatingError
from kafscale.spark.jobs.mirror.cluster import Cluster, to_error, wrap_errors
from kafscale.spark.jobs.mirror.offset_mapping import (
    MIRROR_HEADER,
    POLL_S_MAX,
    Origin,
    TargetReader,
    bounds,
)

CHUNK_COUNT_MAX: Final = 500
CHUNK_S_MAX: Final = 0.1
FLUSH_S_MAX: Final = 310.0
"""Longer than the delivery timeout of librdkafka."""

QUEUE_FULL_POLL_S: Final = 0.1


class PartitionCopy(msgspec.Struct, frozen=True):
    """A partition of the source, and the topic that it is copied to."""

    topic: str
    target: str
    partition: int
    position: int | None = None
    """The end of what an earlier pass of the same run has read."""


class MirrorItem(msgspec.Struct, frozen=True):
    """The partitions of one task."""

    source: Cluster
    target: Cluster
    source_id: str
    target_id: str
    partitions: tuple[PartitionCopy, ...]
    codec: str


class PartitionResult(msgspec.Struct):
    """The result of copying a partition in one pass."""

    topic: str
    target: str
    partition: int
    position: int
    """The end of what was read from the source."""
    record_count: int = 0
    size_bytes: int = 0
    lost_count: int = 0
    """The number of offsets that the source had deleted before they were copied."""
    returned_count: int = 0
    """The number of records that came from the target, and were not copied back."""
    newest_ms: int | None = None
    """The greatest timestamp of a copied record."""


def mirror_partitions(
    item: MirrorItem, step: Callable[[str], None] = lambda _: None
) -> list[PartitionResult]:
    """Copy new records; `step` gets the name of each finished step, for tests."""
    reader = TargetReader(item.target, item.source_id)
    consumer = item.source.consumer("source")
    try:
        copy = _Pass(item, reader, consumer)
        step("opened")
        producer = item.target.producer(item.codec)
        try:
            copy.run(producer, step)
        finally:
            # Another attempt may start at once: no record of this one may arrive after it.
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

    def __init__(self, item: MirrorItem, reader: TargetReader, consumer: Any) -> None:
        self._item = item
        self._reader = reader
        self._consumer = consumer
        self._failure: KafkaError | None = None
        self._ends: dict[tuple[str, int], int] = {}
        self._results: dict[tuple[str, int], PartitionResult] = {}
        for copy in item.partitions:
            self._start(copy)

    @property
    def results(self) -> list[PartitionResult]:
        return list(self._results.values())

    def _start(self, copy: PartitionCopy) -> None:
        source = (copy.topic, copy.partition)
        first, end = bounds(self._item.source, self._consumer, *source)
        due = self._reader.next_offset(source, (copy.target, copy.partition))
        due = max(due or 0, copy.position or 0)
        if due > end:
            raise InvalidRequestError(
                f"{copy.topic}/{copy.partition} ends at {end}, but was mirrored up to {due}:"
                " it was deleted and created again; mirror it under another name"
            )
        start = max(due, first)
        self._ends[source] = end
        self._results[source] = PartitionResult(
            copy.topic, copy.target, copy.partition, start, lost_count=start - due if due else 0
        )

    def run(self, producer: Any, step: Callable[[str], None]) -> None:
        pending = {
            source for source, one in self._results.items() if one.position < self._ends[source]
        }
        with wrap_errors(self._item.source):
            self._consumer.assign(
                [TopicPartition(*source, self._results[source].position) for source in pending]
            )
        last_received = time.monotonic()
        while pending:
            # It waits until it has all messages or the timeout, so the timeout must be short.
            messages = self._consumer.consume(CHUNK_COUNT_MAX, CHUNK_S_MAX)
            if messages:
                last_received = time.monotonic()
            elif time.monotonic() - last_received > POLL_S_MAX:
                raise OperatingError(
                    f"the cluster at {self._item.source.bootstrap} sends no records"
                )
            for message in messages:
                self._receive(producer, pending, message)
            producer.poll(0)
            self._check_delivery()
            step("produced")
        producer.flush(FLUSH_S_MAX)
        self._check_delivery()

    def _receive(self, producer: Any, pending: set[tuple[str, int]], message: Any) -> None:
        """Copy a record, unless it is of the next pass, which begins at the position of this one.

        A partition that is not pending any more remains assigned, because a new assignment would
        fetch the others again. Producers write to the source during the pass, so records and ends
        of partitions are received that are beyond the end of the pass.
        """
        if message.error() is not None:
            self._check_end(message.error())
        source = (message.topic(), message.partition())
        if source not in pending:
            return
        result, end = self._results[source], self._ends[source]
        if message.error() is not None:
            # The last stable offset: a transaction after it may be open.
            result.position = max(result.position, min(message.offset(), end))
            pending.discard(source)
        elif message.offset() < end:
            self._copy(producer, result, message)
        else:
            result.position = end
        if result.position >= end:
            pending.discard(source)

    def commit(self) -> None:
        """Commit the position in the source, which may be after the last copied record."""
        for source, one in self._results.items():
            target = (one.target, one.partition)
            position = Origin(self._item.source_id, *source, one.position)
            _, end = self._reader.bounds(*target)
            self._reader.commit(target, end, position)

    def _copy(self, producer: Any, result: PartitionResult, message: Any) -> None:
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
        timestamp_type, timestamp_ms = message.timestamp()
        times = {} if timestamp_type == TIMESTAMP_NOT_AVAILABLE else {"timestamp": timestamp_ms}
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
                producer.poll(QUEUE_FULL_POLL_S)
        result.record_count += 1
        result.size_bytes += len(message)
        if times:
            result.newest_ms = max(result.newest_ms or 0, timestamp_ms)

    def _on_delivery(self, error: KafkaError | None, _message: Any) -> None:
        if error is not None and self._failure is None:
            self._failure = error

    def _check_delivery(self) -> None:
        if self._failure is not None:
            raise to_error(self._item.target, self._failure)

    def _check_end(self, error: KafkaError) -> None:
        """Raise unless the error is the end of the partition."""
        if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name.
            raise to_error(self._item.source, error)
