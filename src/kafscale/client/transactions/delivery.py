"""Sends the batches of a producer's transactions to the leaders of their partitions.

Invariants:
* The batches of a partition are sent in order, one at a time, each with the sequence number after
  the last one; a batch is retried with the same number, so it is stored once.
* After the first failure nothing more is sent: the transaction cannot be committed any more. `wait`
  raises that failure.

The producer decides what a failure means, and when a transaction begins and ends.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

from kafscale.client.client import NO_LEADER, Client, leaders_of
from kafscale.client.errors import (
    BrokerResponseError,
    Pause,
    ProducerFencedError,
    check,
    is_retriable,
    retry,
)
from kafscale.client.group_offsets import format_topic_partition
from kafscale.client.partitioner import Partitioner
from kafscale.client.transactions.batches import RecordCollector, sequence_after, stamp
from kafscale.client.transactions.coordinator import FIRST_PAUSE_SECONDS, ProducerIdentity
from kafscale.errors import KafscaleError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProducedPartition,
    ProduceRequest,
    TopicToProduce,
)
from kafscale.text.topic_partition import TopicPartition

TIMEOUT_MS: Final = 30_000
ACKS_ALL: Final = -1

_PRODUCE_CLASSIC_MAX: Final = 11
"""From v12 on, a Produce request adds its partitions to the transaction (KIP-890)."""


class _Partition:
    """The batches of one partition."""

    def __init__(self) -> None:
        self.collector = RecordCollector()
        self.sequence = 0
        self.sending: asyncio.Task[None] | None = None


class Topic:
    """A topic that is written: its latest metadata, and the choice of partitions."""

    def __init__(self, metadata: TopicMetadata, random: Random) -> None:
        self.metadata = metadata
        self.partitioner = Partitioner(len(metadata.partitions), random)

    def check_partition(self, index: int) -> None:
        if index not in leaders_of(self.metadata):
            raise BrokerResponseError(
                format_topic_partition((self.metadata.name or "", index)),
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )


class Delivery:
    """The partitions that a transactional producer writes."""

    def __init__(
        self,
        client: Client,
        transactional_id: str,
        before_write: Callable[[TopicPartition], Awaitable[None]],
        *,
        random: Random,
        pause: Pause = asyncio.sleep,
    ) -> None:
        """`before_write` is awaited before each batch, to add its partition to the transaction."""
        self.producer = ProducerIdentity()
        self.is_version_2 = False
        self.failure: KafscaleError | None = None
        """The first failure since `start`."""
        self._client = client
        self._transactional_id = transactional_id
        self._before_write = before_write
        self._random = random
        self._pause = pause
        self._topics: dict[str, Topic] = {}
        self._partitions: dict[TopicPartition, _Partition] = {}

    def use(self, producer: ProducerIdentity) -> None:
        """Write as this producer; with a new id or epoch, sequence numbers start again."""
        if producer != self.producer:
            for partition in self._partitions.values():
                partition.sequence = 0
        self.producer = producer

    def start(self, *, version_2: bool) -> None:
        """Start a transaction."""
        self.is_version_2 = version_2
        self.failure = None

    async def topic(self, name: str) -> Topic:
        """The topic of this name, which brokers may create."""
        topic = self._topics.get(name)
        if topic is None:
            metadata = await retry(lambda: self._client.topic(name, create=True), pause=self._pause)
            topic = self._topics.setdefault(name, Topic(metadata, self._random))
        return topic

    def collector(self, topic_partition: TopicPartition) -> RecordCollector:
        return self._partition(topic_partition).collector

    async def send(self, topic_partition: TopicPartition, batch: bytearray) -> None:
        """Send a batch when the one before it is stored, and return while it is in flight."""
        partition = self._partition(topic_partition)
        while partition.sending is not None and not partition.sending.done():
            await asyncio.wait([partition.sending])
        if self.failure is None:
            sending = self._deliver(topic_partition, partition, batch)
            partition.sending = asyncio.create_task(sending)

    async def wait(self) -> None:
        """Wait until no batch is in flight; raise the first failure, if there is one."""
        sending = [each.sending for each in self._partitions.values() if each.sending is not None]
        await asyncio.gather(*sending)
        if self.failure is not None:
            raise self.failure

    def waiting(self) -> list[tuple[TopicPartition, RecordCollector]]:
        """The partitions with records that no batch has yet."""
        return [(key, each.collector) for key, each in self._partitions.items() if each.collector]

    def discard(self) -> None:
        """Drop the records that no batch has yet."""
        for _, collector in self.waiting():
            collector.clear()

    def cancel(self) -> None:
        for partition in self._partitions.values():
            if partition.sending is not None:
                partition.sending.cancel()

    def _partition(self, topic_partition: TopicPartition) -> _Partition:
        return self._partitions.setdefault(topic_partition, _Partition())

    async def _deliver(
        self, topic_partition: TopicPartition, partition: _Partition, batch: bytearray
    ) -> None:
        """Send a batch until it is stored or the transaction has failed."""
        stamp(batch, self.producer, partition.sequence)

        async def once() -> None:
            try:
                await self._attempt(topic_partition, batch)
            except KafscaleError as error:
                if is_retriable(error):
                    await self._refresh(topic_partition[0])
                raise

        try:
            await self._before_write(topic_partition)
            await retry(once, self._should_retry, self._pause, first_seconds=FIRST_PAUSE_SECONDS)
        except KafscaleError as error:
            self.failure = self.failure or error
        else:
            partition.sequence = sequence_after(batch, partition.sequence)

    def _should_retry(self, error: KafscaleError) -> bool:
        return self.failure is None and is_retriable(error)

    async def _refresh(self, name: str) -> None:
        try:
            self._topics[name].metadata = await self._client.topic(name)
        except KafscaleError as error:
            if not is_retriable(error):
                raise

    async def _attempt(self, topic_partition: TopicPartition, batch: bytearray) -> None:
        name, index = topic_partition
        metadata = self._topics[name].metadata
        leader_id = leaders_of(metadata).get(index, NO_LEADER)
        connection = await self._client.broker(leader_id)
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=ACKS_ALL,
            timeout_ms=TIMEOUT_MS,
            topics=[
                TopicToProduce(
                    name=name,
                    topic_id=metadata.topic_id,
                    partitions=[PartitionToProduce(index, memoryview(batch))],
                )
            ],
        )
        response = await connection.ask(
            PRODUCE,
            request,
            wait_seconds=TIMEOUT_MS / 1000,
            version_max=None if self.is_version_2 else _PRODUCE_CLASSIC_MAX,
        )
        _check_produced(topic_partition, response.topics[0].partitions[0])


def _check_produced(topic_partition: TopicPartition, produced: ProducedPartition) -> None:
    subject = format_topic_partition(topic_partition)
    if produced.error_code == ErrorCode.PRODUCER_FENCED:
        raise ProducerFencedError(subject, produced.error_code, produced.error_message)
    # The broker has stored the batch before, but the response was lost.
    if produced.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
        check(subject, produced.error_code, produced.error_message)
