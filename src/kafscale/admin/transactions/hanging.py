"""Finds hanging transactions: open in a partition, but unknown to every coordinator.

They hold back the last stable offset of the partition, and with it its `read_committed` consumers,
until they are aborted. Clients before KIP-890 can cause them, by a write that arrives after the end
of its transaction.

Invariant: no transaction is reported that a coordinator will end. The partition is asked before and
after the coordinators, and all of those answer.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from kafscale.admin.transactions.coordinators import (
    TIMEOUT_MS_MAX_DEFAULT,
    timeout_ms_max,
    transactions_of,
    will_end,
)
from kafscale.admin.transactions.producers import PartitionProducer, describe_all, is_moved
from kafscale.admin.transactions.transactions import TransactionDetail
from kafscale.client.client import NO_LEADER, Client, leaders_of
from kafscale.client.errors import Pause, check, retry
from kafscale.protocol.messages.metadata import TopicMetadata


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
    client: Client,
    topics: Sequence[str] = (),
    *,
    now_ms: int,
    idle_ms: int | None = None,
    pause: Pause = asyncio.sleep,
) -> list[HangingTransaction]:
    """The hanging transactions of these topics, or of all, by partition and offset.

    Only those are looked at whose producer has written nothing for `idle_ms`; by default, for the
    longest timeout that the cluster permits, and at least for Kafka's default of it. Partitions
    without a leader are left out.
    """
    if idle_ms is None:
        idle_ms = max(await timeout_ms_max(client), TIMEOUT_MS_MAX_DEFAULT)

    async def once() -> list[HangingTransaction]:
        return await _find(client, topics, now_ms, idle_ms, pause)

    return await retry(once, is_moved, pause)


async def _find(
    client: Client, topics: Sequence[str], now_ms: int, idle_ms: int, pause: Pause
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
    producer_ids = {each.producer_id for each in candidates}
    known = await transactions_of(client, producer_ids, pause=pause)
    unknown = [
        each
        for each in candidates
        if not will_end(known.get(each.producer_id), each.topic, each.partition)
    ]
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


def _transaction_of(producer: PartitionProducer) -> tuple[str, int, int, int | None]:
    return (
        producer.topic,
        producer.partition,
        producer.producer_id,
        producer.transaction_start_offset,
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
