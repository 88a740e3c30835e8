"""Finds hanging transactions: open in a partition, but unknown to every coordinator.

They hold back the last stable offset of the partition, and with it its `read_committed` consumers,
until they are aborted. Clients before KIP-890 can cause them, by a write that arrives after the end
of its transaction.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from kafscale.admin.transactions.producers import PartitionProducer, describe_all, is_moved
from kafscale.admin.transactions.transactions import (
    OPEN_STATES,
    TransactionDetail,
    TransactionFilter,
    describe_listed,
    list_all,
)
from kafscale.client.client import NO_LEADER, Client, leaders_of
from kafscale.client.errors import check, retry
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.text.units import MINUTE_MS

IDLE_MS_DEFAULT: Final = 15 * MINUTE_MS
"""Kafka's maximum of transaction timeouts, `transaction.max.timeout.ms`, by default."""


class HangingTransaction(msgspec.Struct, frozen=True, rename="camel"):
    """A transaction that no coordinator will end, in one partition."""

    topic: str
    partition: int
    start_offset: int
    producer_id: int
    producer_epoch: int
    transactional_id: str | None
    """None if no transactional id has this producer now."""
    last_written_ms: int | None


async def find(
    client: Client, topics: Sequence[str] = (), *, now_ms: int, idle_ms: int = IDLE_MS_DEFAULT
) -> list[HangingTransaction]:
    """The hanging transactions of these topics, or of all, by partition and offset.

    Only those are looked at whose producer has written nothing for `idle_ms`: a shorter time than
    the maximum of transaction timeouts may report transactions that are about to end. Partitions
    without a leader are left out.
    """

    async def once() -> list[HangingTransaction]:
        return await _find(client, topics, now_ms, idle_ms)

    return await retry(once, is_moved)


async def _find(
    client: Client, topics: Sequence[str], now_ms: int, idle_ms: int
) -> list[HangingTransaction]:
    metadata = await _topics(client, topics)
    chosen = [
        (topic.name or "", index)
        for topic in metadata
        for index, leader_id in leaders_of(topic).items()
        if leader_id != NO_LEADER
    ]
    candidates = [
        each
        for each in await describe_all(client, metadata, chosen)
        if each.transaction_start_offset is not None
        and now_ms - (each.last_timestamp_ms or 0) >= idle_ms
    ]
    if not candidates:
        return []
    known = await _transactions_of(client, {each.producer_id for each in candidates})
    unknown = [each for each in candidates if not _has_partition(known.get(each.producer_id), each)]
    # A transaction may have ended between the two questions.
    again = await describe_all(client, metadata, {(each.topic, each.partition) for each in unknown})
    still_open = {_transaction_of(each) for each in again}
    return sorted(
        (
            _hanging(each, known.get(each.producer_id))
            for each in unknown
            if _transaction_of(each) in still_open
        ),
        key=lambda each: (each.topic, each.partition, each.start_offset),
    )


async def _topics(client: Client, names: Sequence[str]) -> list[TopicMetadata]:
    """The metadata of these topics, or of all that exist."""
    topics = (await client.metadata(list(names) or None)).topics
    for topic in topics if names else ():
        check(f"topic {topic.name}", topic.error_code)
    return list(topics)


async def _transactions_of(client: Client, producer_ids: set[int]) -> dict[int, TransactionDetail]:
    """The transactions of these producers, as their coordinators know them."""
    listed = await list_all(client, TransactionFilter(producer_ids=sorted(producer_ids)))
    return {each.producer_id: each for each in await describe_listed(client, listed)}


def _transaction_of(producer: PartitionProducer) -> tuple[str, int, int, int | None]:
    return (
        producer.topic,
        producer.partition,
        producer.producer_id,
        producer.transaction_start_offset,
    )


def _has_partition(transaction: TransactionDetail | None, producer: PartitionProducer) -> bool:
    """Whether the coordinator will end the transaction in this partition."""
    return (
        transaction is not None
        and transaction.state in OPEN_STATES
        and any(
            each.topic == producer.topic and producer.partition in each.partitions
            for each in transaction.topics
        )
    )


def _hanging(
    producer: PartitionProducer, transaction: TransactionDetail | None
) -> HangingTransaction:
    assert producer.transaction_start_offset is not None
    return HangingTransaction(
        topic=producer.topic,
        partition=producer.partition,
        start_offset=producer.transaction_start_offset,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transactional_id=None if transaction is None else transaction.transactional_id,
        last_written_ms=producer.last_timestamp_ms,
    )
