"""Sends records of input lines in batches, and waits for their acknowledgements.

Invariants:
* The records of a partition are sent in order, one batch at a time. A batch is retried with the
  same sequence numbers, so an idempotent producer writes it once.
* A batch that cannot be sent ends the producer, with an error that names its lines.
* At most two batches per partition are in memory: one in flight, one being filled.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from kafscale.aio.backoff import Backoff
from kafscale.client.client import NO_LEADER, Client, leaders_of
from kafscale.client.errors import BrokerResponseError, check, is_retriable, retry
from kafscale.client.partitioner import Partitioner
from kafscale.errors import KafscaleError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, TopicMetadata
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProducedPartition,
    ProduceRequest,
    TopicToProduce,
)
from kafscale.records import Codec, Header, Record, build
from kafscale.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE

ACKS_NONE: Final = 0
ACKS_ALL: Final = -1
TIMEOUT_MS: Final = 30_000
RETRIES_COUNT_MAX: Final = 10
RETRY_SECONDS_MAX: Final = 5.0
CREATION_RETRIES_COUNT_MAX: Final = 4
RECORD_OVERHEAD_BYTES: Final = 12
"""The approximate size of the lengths and deltas of a record."""
_SEQUENCE_MASK: Final = 0x7FFF_FFFF


class LineError(KafscaleError):
    """A line that is not a valid record for this topic."""

    def __init__(self, line: int, problem: object) -> None:
        super().__init__(f"line {line}: {problem}")


class OutgoingRecord(NamedTuple):
    """A record to send, and its line number."""

    line: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    timestamp_ms: int | None
    partition: int | None


@dataclass(frozen=True)
class SendSettings:
    """Settings of a sender."""

    acks: int = ACKS_ALL
    codec: Codec = Codec.NONE
    batch_bytes: int = 512 * 1024
    idempotent: bool = True


@dataclass
class SendTotals:
    """Totals of acknowledged records, or of sent records with acks=0."""

    record_count: int = 0
    size_bytes: int = 0
    partitions: set[int] = field(default_factory=set)


class _PartitionQueue:
    """The batch of a partition that is being filled, and the one in flight."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.records: list[Record] = []
        self.lines: list[int] = []
        self.size_bytes = 0
        self.sequence = 0
        self.sending: asyncio.Task[None] | None = None

    def add(self, record: OutgoingRecord, now_ms: int) -> None:
        key, value = record.key, record.value
        timestamp_ms = now_ms if record.timestamp_ms is None else record.timestamp_ms
        self.records.append(Record(len(self.records), timestamp_ms, key, value, record.headers))
        self.lines.append(record.line)
        self.size_bytes += len(key or b"") + len(value or b"") + RECORD_OVERHEAD_BYTES
        for header in record.headers:
            self.size_bytes += len(header.key) + len(header.value or b"")

    def take(self) -> tuple[list[Record], list[int], int]:
        """Return the batch with its lines and size, and start a new one."""
        batch = self.records, self.lines, self.size_bytes
        self.records, self.lines, self.size_bytes = [], [], 0
        return batch


class Sender:
    """A producer of one topic: `open`, `add` records, `flush` at times, `close`."""

    def __init__(
        self,
        client: Client,
        topic: str,
        settings: SendSettings,
        group: asyncio.TaskGroup,
        *,
        clock: Callable[[], int],
        random: Random,
        notify: Callable[[str], None],
        totals: SendTotals,
    ) -> None:
        self._client = client
        self._name = topic
        self._settings = settings
        self._group = group
        self._clock = clock
        self._random = random
        self._notify = notify
        self._totals = totals
        self._producer_id, self._producer_epoch = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
        self._topic: TopicMetadata
        self._queues: dict[int, _PartitionQueue] = {}
        self._partitioner: Partitioner

    async def open(self) -> None:
        """Find the topic, or have the broker create it, and get a producer id."""
        self._topic = await self._find_topic()
        indexes = [partition.index for partition in self._topic.partitions]
        self._queues = {index: _PartitionQueue(index) for index in indexes}
        self._partitioner = Partitioner(len(indexes), self._random)
        if self._settings.idempotent:
            # An Apache Kafka broker that has just started cannot allocate ids yet.
            await retry(self._init_producer_id)

    async def add(self, record: OutgoingRecord) -> None:
        """Add a record; wait while its partition has a full batch and one in flight."""
        partition = record.partition
        if partition is None:
            partition = self._partitioner.choose(record.key)
        queue = self._queues.get(partition)
        if queue is None:
            known = f"only 0 to {len(self._queues) - 1}"
            raise LineError(
                record.line, f"topic {self._name} has no partition {partition}, {known}"
            )
        queue.add(record, self._clock())
        if queue.size_bytes >= self._settings.batch_bytes:
            await self._dispatch(queue)

    async def flush(self) -> None:
        """Send the batches that are not full."""
        for queue in self._queues.values():
            if queue.records:
                await self._dispatch(queue)

    async def close(self) -> None:
        """Send all remaining batches, and wait until they are acknowledged."""
        await self.flush()
        await asyncio.gather(*(queue.sending for queue in self._queues.values() if queue.sending))
        if self._settings.acks == ACKS_NONE:
            # Brokers process the requests of a connection in order: this response is the last.
            for leader_id in sorted(set(leaders_of(self._topic).values()) - {NO_LEADER}):
                connection = await self._client.broker(leader_id)
                await connection.ask(METADATA, MetadataRequest(topics=[]))

    async def _init_producer_id(self) -> None:
        connection = await self._client.any_broker()
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=TIMEOUT_MS)
        response = await connection.ask(INIT_PRODUCER_ID, request)
        check("a producer id", response.error_code)
        self._producer_id = response.producer_id
        self._producer_epoch = response.producer_epoch

    async def _find_topic(self) -> TopicMetadata:
        backoff = Backoff()
        for _ in range(CREATION_RETRIES_COUNT_MAX):
            try:
                return await self._client.topic(self._name, create=True)
            except BrokerResponseError as error:
                # A broker may respond before a new topic has a leader.
                if not error.error_code.retriable:
                    raise
                await asyncio.sleep(backoff.next_seconds())
        return await self._client.topic(self._name, create=True)

    async def _dispatch(self, queue: _PartitionQueue) -> None:
        if queue.sending is not None:
            await queue.sending
        self._partitioner.batch_filled(queue.partition)
        records, lines, size_bytes = queue.take()
        queue.sending = self._group.create_task(self._send(queue, records, lines, size_bytes))

    async def _send(
        self, queue: _PartitionQueue, records: list[Record], lines: list[int], size_bytes: int
    ) -> None:
        idempotent = self._producer_id >= 0
        batch = build(
            records,
            codec=self._settings.codec,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=queue.sequence if idempotent else NO_SEQUENCE,
        )
        try:
            await self._deliver(queue.partition, memoryview(batch))
        except BrokerResponseError as error:
            if error.error_code != ErrorCode.MESSAGE_TOO_LARGE or len(records) == 1:
                raise KafscaleError(_describe_failure(lines, queue.partition, error)) from None
            await self._send_halves(queue, records, lines, size_bytes)
            return
        except KafscaleError as error:
            raise KafscaleError(_describe_failure(lines, queue.partition, error)) from None
        queue.sequence = (queue.sequence + len(records)) & _SEQUENCE_MASK
        self._totals.record_count += len(records)
        self._totals.size_bytes += size_bytes - RECORD_OVERHEAD_BYTES * len(records)
        self._totals.partitions.add(queue.partition)

    async def _send_halves(
        self, queue: _PartitionQueue, records: list[Record], lines: list[int], size_bytes: int
    ) -> None:
        half = len(records) // 2
        for part in (slice(half), slice(half, None)):
            numbered = [
                Record(index, each.timestamp_ms, each.key, each.value, each.headers)
                for index, each in enumerate(records[part])
            ]
            share = size_bytes * len(numbered) // len(records)
            await self._send(queue, numbered, lines[part], share)

    async def _deliver(self, partition: int, batch: memoryview) -> None:
        """Send a batch, and retry while the error is retriable."""
        backoff = Backoff(max_seconds=RETRY_SECONDS_MAX)
        for _ in range(RETRIES_COUNT_MAX):
            try:
                if backoff.tries:
                    self._topic = await self._client.topic(self._name)
                await self._attempt(partition, batch)
            except KafscaleError as error:
                if not is_retriable(error) or self._settings.acks == ACKS_NONE:
                    raise
                self._notify(f"{error}; retrying")
                await asyncio.sleep(backoff.next_seconds())
            else:
                return
        await self._attempt(partition, batch)

    async def _attempt(self, partition: int, batch: memoryview) -> None:
        leader_id = leaders_of(self._topic).get(partition, NO_LEADER)
        connection = await self._client.broker(leader_id)
        topic = TopicToProduce(
            name=self._name,
            topic_id=self._topic.topic_id,
            partitions=[PartitionToProduce(partition, batch)],
        )
        acks = self._settings.acks
        request = ProduceRequest(acks=acks, timeout_ms=TIMEOUT_MS, topics=[topic])
        if acks == ACKS_NONE:
            await connection.send_without_response(PRODUCE, request)
            return
        response = await connection.ask(PRODUCE, request, wait_seconds=TIMEOUT_MS / 1000)
        produced = response.topics[0].partitions[0]
        # The broker has stored the batch before, but the response was lost.
        if produced.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            check(f"topic {self._name}", produced.error_code, _reason(produced))


def _reason(produced: ProducedPartition) -> str | None:
    if produced.record_errors:
        first = produced.record_errors[0]
        return f"record {first.batch_index + 1} of the batch: {first.message}"
    return produced.error_message


def _describe_failure(lines: list[int], partition: int, error: KafscaleError) -> str:
    """The error with the numbers of its input lines."""
    if len(lines) == 1:
        return f"the record on line {lines[0]} was not produced to partition {partition}: {error}"
    return (
        f"{len(lines)} records on lines {lines[0]} to {lines[-1]} were not produced"
        f" to partition {partition}: {error}"
    )
