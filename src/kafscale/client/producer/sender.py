"""Sends records in batches, partition by partition, and sees to it that they arrive.

The laws: the records of a partition are sent in order, one batch at a time, and a batch that fails
in a way that may pass is sent again under the same sequence numbers, so that an idempotent producer
writes it once. A batch that cannot be sent ends everything, with the lines that were in it. At
most two batches per partition are held: one on its way, one being filled.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from kafscale.client.client import NO_LEADER, Client, leaders_of
from kafscale.client.errors import AnsweredError, check, may_pass
from kafscale.client.partitioner import Partitioner
from kafscale.client.retry import retried
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
RETRY_SECONDS_FIRST: Final = 0.1
RETRY_SECONDS_MAX: Final = 5.0
CREATION_RETRIES_COUNT_MAX: Final = 4
RECORD_OVERHEAD_BYTES: Final = 12
"""About what the lengths and deltas of a record take beside its fields."""
_SEQUENCE_MASK: Final = 0x7FFF_FFFF


class LineError(KafscaleError):
    """A line that is no record for this topic."""

    def __init__(self, line: int, problem: object) -> None:
        super().__init__(f"line {line}: {problem}")


class Outgoing(NamedTuple):
    """A record that is to be sent, and the line that it stood on."""

    line: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    timestamp_ms: int | None
    partition: int | None


@dataclass(frozen=True)
class SendSettings:
    """How records are sent."""

    acks: int = ACKS_ALL
    codec: Codec = Codec.NONE
    batch_bytes: int = 512 * 1024
    idempotent: bool = True


@dataclass
class Sent:
    """What has been acknowledged so far, or only sent, where nobody acknowledges."""

    record_count: int = 0
    size_bytes: int = 0
    partitions: set[int] = field(default_factory=set)


class _Lane:
    """One partition: the batch that is being filled, and the one on its way."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.records: list[Record] = []
        self.lines: list[int] = []
        self.size_bytes = 0
        self.sequence = 0
        self.sending: asyncio.Task[None] | None = None

    def add(self, outgoing: Outgoing, now_ms: int) -> None:
        key, value = outgoing.key, outgoing.value
        timestamp_ms = now_ms if outgoing.timestamp_ms is None else outgoing.timestamp_ms
        self.records.append(Record(len(self.records), timestamp_ms, key, value, outgoing.headers))
        self.lines.append(outgoing.line)
        self.size_bytes += len(key or b"") + len(value or b"") + RECORD_OVERHEAD_BYTES
        for header in outgoing.headers:
            self.size_bytes += len(header.key) + len(header.value or b"")

    def take(self) -> tuple[list[Record], list[int], int]:
        taken = self.records, self.lines, self.size_bytes
        self.records, self.lines, self.size_bytes = [], [], 0
        return taken


class Sender:
    """A producer of one topic. `open` it, `add` records, `flush` now and then, `close` it."""

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
        sent: Sent,
    ) -> None:
        self._client = client
        self._name = topic
        self._settings = settings
        self._group = group
        self._clock = clock
        self._random = random
        self._notify = notify
        self._sent = sent
        self._producer_id, self._producer_epoch = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
        self._topic: TopicMetadata
        self._lanes: dict[int, _Lane] = {}
        self._partitioner: Partitioner

    async def open(self) -> None:
        """Find the topic, which may come into being by this, and become a producer."""
        self._topic = await self._find_topic()
        indexes = [partition.index for partition in self._topic.partitions]
        self._lanes = {index: _Lane(index) for index in indexes}
        self._partitioner = Partitioner(len(indexes), self._random)
        if self._settings.idempotent:
            # A Kafka that was just started is still fetching ids to give away.
            await retried(self._become_producer)

    async def add(self, outgoing: Outgoing) -> None:
        """Take a record; waits where its partition has a full batch that cannot leave yet."""
        partition = outgoing.partition
        if partition is None:
            partition = self._partitioner.choose(outgoing.key)
        lane = self._lanes.get(partition)
        if lane is None:
            known = f"only 0 to {len(self._lanes) - 1}"
            raise LineError(
                outgoing.line, f"topic {self._name} has no partition {partition}, {known}"
            )
        lane.add(outgoing, self._clock())
        if lane.size_bytes >= self._settings.batch_bytes:
            await self._dispatch(lane)

    async def flush(self) -> None:
        """Send on their way the batches that are not full."""
        for lane in self._lanes.values():
            if lane.records:
                await self._dispatch(lane)

    async def close(self) -> None:
        """Send all that is left, and wait until it has arrived."""
        await self.flush()
        await asyncio.gather(*(lane.sending for lane in self._lanes.values() if lane.sending))
        if self._settings.acks == ACKS_NONE:
            # Requests of a connection are worked on in order: this answer comes after them all.
            for leader_id in sorted(set(leaders_of(self._topic).values()) - {NO_LEADER}):
                connection = await self._client.broker(leader_id)
                await connection.ask(METADATA, MetadataRequest(topics=[]))

    async def _become_producer(self) -> None:
        connection = await self._client.any_broker()
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=TIMEOUT_MS)
        response = await connection.ask(INIT_PRODUCER_ID, request)
        check("a producer id", response.error_code)
        self._producer_id = response.producer_id
        self._producer_epoch = response.producer_epoch

    async def _find_topic(self) -> TopicMetadata:
        for attempt in range(CREATION_RETRIES_COUNT_MAX):
            try:
                return await self._client.topic(self._name, create=True)
            except AnsweredError as error:
                # A broker may answer before a topic that it creates has a leader.
                if not error.answer.retriable:
                    raise
                await asyncio.sleep(RETRY_SECONDS_FIRST * 2**attempt)
        return await self._client.topic(self._name, create=True)

    async def _dispatch(self, lane: _Lane) -> None:
        if lane.sending is not None:
            await lane.sending
        self._partitioner.batch_filled(lane.partition)
        records, lines, size_bytes = lane.take()
        lane.sending = self._group.create_task(self._send(lane, records, lines, size_bytes))

    async def _send(
        self, lane: _Lane, records: list[Record], lines: list[int], size_bytes: int
    ) -> None:
        idempotent = self._producer_id >= 0
        batch = build(
            records,
            codec=self._settings.codec,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=lane.sequence if idempotent else NO_SEQUENCE,
        )
        try:
            await self._deliver(lane.partition, memoryview(batch))
        except AnsweredError as error:
            if error.answer != ErrorCode.MESSAGE_TOO_LARGE or len(records) == 1:
                raise KafscaleError(_about(lines, lane.partition, error)) from None
            await self._send_halves(lane, records, lines, size_bytes)
            return
        except KafscaleError as error:
            raise KafscaleError(_about(lines, lane.partition, error)) from None
        lane.sequence = (lane.sequence + len(records)) & _SEQUENCE_MASK
        self._sent.record_count += len(records)
        self._sent.size_bytes += size_bytes - RECORD_OVERHEAD_BYTES * len(records)
        self._sent.partitions.add(lane.partition)

    async def _send_halves(
        self, lane: _Lane, records: list[Record], lines: list[int], size_bytes: int
    ) -> None:
        half = len(records) // 2
        for part in (slice(half), slice(half, None)):
            numbered = [
                Record(place, each.timestamp_ms, each.key, each.value, each.headers)
                for place, each in enumerate(records[part])
            ]
            share = size_bytes * len(numbered) // len(records)
            await self._send(lane, numbered, lines[part], share)

    async def _deliver(self, partition: int, batch: memoryview) -> None:
        """Send a batch until it has arrived, or cannot arrive."""
        for attempt in range(RETRIES_COUNT_MAX):
            try:
                if attempt:
                    self._topic = await self._client.topic(self._name)
                await self._attempt(partition, batch)
            except KafscaleError as error:
                if not may_pass(error) or self._settings.acks == ACKS_NONE:
                    raise
                self._notify(f"{error}; trying again")
                await asyncio.sleep(min(RETRY_SECONDS_FIRST * 2**attempt, RETRY_SECONDS_MAX))
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
            await connection.tell(PRODUCE, request)
            return
        response = await connection.ask(PRODUCE, request, wait_seconds=TIMEOUT_MS / 1000)
        produced = response.topics[0].partitions[0]
        # A duplicate is what was sent before, when its answer got lost.
        if produced.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            check(f"topic {self._name}", produced.error_code, _reason(produced))


def _reason(produced: ProducedPartition) -> str | None:
    if produced.record_errors:
        first = produced.record_errors[0]
        return f"record {first.batch_index + 1} of the batch: {first.message}"
    return produced.error_message


def _about(lines: list[int], partition: int, error: KafscaleError) -> str:
    """The error, with the lines of input that it is about."""
    if len(lines) == 1:
        return f"the record on line {lines[0]} was not produced to partition {partition}: {error}"
    return (
        f"{len(lines)} records on lines {lines[0]} to {lines[-1]} were not produced"
        f" to partition {partition}: {error}"
    )
