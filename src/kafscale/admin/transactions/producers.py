"""The producers of partitions, as their leaders know them, and the abort of a hanging transaction.

A transaction that hangs is open in a partition, but no coordinator will end it. It is aborted by a
marker that is written to the partition alone, so its records are lost to `read_committed`
consumers.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kafscale.admin.transactions.coordinators import transactions_of, will_end
from kafscale.client.client import NO_LEADER, Client, leaders_of
from kafscale.client.errors import BrokerResponseError, check, retry
from kafscale.client.group_offsets import by_topic, format_topic_partition
from kafscale.errors import InvalidRequestError, KafscaleError, UnknownTopicError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    ActiveProducer,
    DescribeProducersRequest,
    TopicToDescribe,
)
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    MarkerToWrite,
    TopicToMark,
    WriteTxnMarkersRequest,
)
from kafscale.text.topic_partition import TopicPartition

PARTITIONS_PER_REQUEST: Final = 500
COORDINATOR_EPOCH_UNKNOWN: Final = 0
"""The epoch of a marker of a producer whose partition has no other marker yet, as Kafka's."""


class PartitionProducer(msgspec.Struct, frozen=True, rename="camel"):
    """A producer that has written to a partition."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    last_sequence: int | None
    last_timestamp_ms: int | None
    coordinator_epoch: int | None
    """Of its last marker in the partition."""
    transaction_start_offset: int | None
    """Of its open transaction."""


async def describe(
    client: Client, topic: str, partitions: Sequence[int] = ()
) -> list[PartitionProducer]:
    """The producers of these partitions of a topic, or of all of them."""

    async def once() -> list[PartitionProducer]:
        metadata = await client.topic(topic)
        indexes = sorted(leaders_of(metadata))
        if missing := set(partitions) - set(indexes):
            raise UnknownTopicError(
                f"topic {topic} has no partition {min(missing)}, only 0 to {indexes[-1]}"
            )
        chosen = {(topic, index) for index in partitions or indexes}
        return await describe_all(client, [metadata], chosen)

    return await retry(once, is_moved)


async def describe_all(
    client: Client, topics: Iterable[TopicMetadata], chosen: Iterable[TopicPartition]
) -> list[PartitionProducer]:
    """The producers of partitions of these topics; raises an error for one without a leader."""
    leaders = {
        (topic.name or "", index): leader_id
        for topic in topics
        for index, leader_id in leaders_of(topic).items()
    }
    producers: list[PartitionProducer] = []
    by_leader = sorted(chosen, key=lambda each: (leaders[each], each))
    for leader_id, group in itertools.groupby(by_leader, key=leaders.__getitem__):
        led = list(group)
        if leader_id == NO_LEADER:
            raise BrokerResponseError(
                format_topic_partition(led[0]), ErrorCode.LEADER_NOT_AVAILABLE
            )
        for start in range(0, len(led), PARTITIONS_PER_REQUEST):
            part = led[start : start + PARTITIONS_PER_REQUEST]
            producers += await _describe(client, leader_id, part)
    return sorted(producers, key=lambda each: (each.topic, each.partition, each.producer_id))


def is_moved(error: KafscaleError) -> bool:
    """Whether the leader of a partition has changed."""
    return (
        isinstance(error, BrokerResponseError)
        and error.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    )


async def abort_at(
    client: Client, topic: str, partition: int, start_offset: int
) -> PartitionProducer:
    """Abort the hanging transaction that begins at an offset of a partition; return its producer.

    Raises an error if a coordinator will end the transaction: that may commit its records, or be
    about to write the marker of a commit.
    """
    found = await _open_at(client, topic, partition, start_offset)
    known = (await transactions_of(client, {found.producer_id})).get(found.producer_id)
    if known is not None and will_end(known, topic, partition):
        raise InvalidRequestError(
            f"the transaction in {format_topic_partition((topic, partition))} does not hang: its"
            f" coordinator will end it; abort it by its transactional id, {known.transactional_id}"
        )
    # It may have ended before the coordinators were asked, and the producer have begun another.
    found = await _open_at(client, topic, partition, start_offset)
    await _write_abort_marker(client, found)
    return found


async def _open_at(
    client: Client, topic: str, partition: int, start_offset: int
) -> PartitionProducer:
    """The producer whose open transaction begins at this offset."""
    for each in await describe(client, topic, [partition]):
        if each.transaction_start_offset == start_offset:
            return each
    raise InvalidRequestError(
        f"{format_topic_partition((topic, partition))} has no open transaction that begins at"
        f" offset {start_offset}"
    )


async def _describe(
    client: Client, leader_id: int, topic_partitions: Sequence[TopicPartition]
) -> list[PartitionProducer]:
    connection = await client.broker(leader_id)
    topics = [TopicToDescribe(name, indexes) for name, indexes in by_topic(topic_partitions)]
    response = await connection.ask(DESCRIBE_PRODUCERS, DescribeProducersRequest(topics=topics))
    producers = []
    for topic in response.topics:
        for described in topic.partitions:
            subject = format_topic_partition((topic.name, described.index))
            check(subject, described.error_code, described.error_message)
            producers += [
                _producer(topic.name, described.index, each) for each in described.active_producers
            ]
    return producers


def _producer(topic: str, partition: int, producer: ActiveProducer) -> PartitionProducer:
    return PartitionProducer(
        topic=topic,
        partition=partition,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_sequence=_known(producer.last_sequence),
        last_timestamp_ms=_known(producer.last_timestamp_ms),
        coordinator_epoch=_known(producer.coordinator_epoch),
        transaction_start_offset=_known(producer.transaction_start_offset),
    )


def _known(value: int) -> int | None:
    return None if value < 0 else value


async def _write_abort_marker(client: Client, producer: PartitionProducer) -> None:
    topic_partition = producer.topic, producer.partition
    leader_id = leaders_of(await client.topic(producer.topic))[producer.partition]
    connection = await client.broker(leader_id)
    marker = MarkerToWrite(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=False,
        topics=[TopicToMark(producer.topic, [producer.partition])],
        coordinator_epoch=producer.coordinator_epoch or COORDINATOR_EPOCH_UNKNOWN,
    )
    response = await connection.ask(WRITE_TXN_MARKERS, WriteTxnMarkersRequest(markers=[marker]))
    for written in response.markers:
        for topic in written.topics:
            for marked in topic.partitions:
                check(format_topic_partition(topic_partition), marked.error_code)
