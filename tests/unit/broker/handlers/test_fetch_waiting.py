"""A waiting Fetch: what an advancing high watermark costs, and when it wakes up."""

import asyncio

import pytest

from doubles import virtual_time
from kafscale.protocol.messages.fetch import (
    FETCH,
    FetchedTopic,
    FetchRequest,
    PartitionToFetch,
    TopicToFetch,
)
from kafscale.storage.log.state.tail import Tail, TailMemory
from unit.broker.in_memory_broker import InMemoryBroker, run_with_broker
from unit.storage.engines import values_batch

PARTITIONS = 200
BATCH = bytes(values_batch([b"x" * 100]).buffer)


class CountingTail(Tail):
    """Counts how often it is asked what it has."""

    __slots__ = ("count",)

    def __init__(self, memory: TailMemory, rolled_offset: int) -> None:
        super().__init__(memory, rolled_offset)
        self.count = 0

    def bytes_from(self, offset: int, enough: int, end_offset: int | None = None) -> int:
        self.count += 1
        return super().bytes_from(offset, enough, end_offset)


def fetch_all(topic_id: bytes, min_bytes: int, max_wait_ms: int = 5_000) -> FetchRequest:
    wanted = [
        PartitionToFetch(index=number, offset=0, max_bytes=1 << 20) for number in range(PARTITIONS)
    ]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 26,
        session_epoch=-1,
        topics=[TopicToFetch(topic_id=topic_id, partitions=wanted)],
    )


async def append_to_each(broker: InMemoryBroker, partitions: range) -> None:
    for number in partitions:
        broker.log("orders", number).append(values_batch([b"x" * 100]), virtual_time.clock_ms())
    await broker.services.storage.wal.flush()


def with_records(topic: FetchedTopic) -> list[int]:
    return [partition.index for partition in topic.partitions if any(map(len, partition.records))]


@pytest.mark.parametrize("min_bytes", [1, PARTITIONS * len(BATCH)])
def test_wal_object_of_all_partitions_is_counted_once_per_partition(min_bytes):
    async def body(broker):
        topic = await broker.topic("orders", PARTITIONS)
        tails = []
        for number in range(PARTITIONS):
            log = broker.log("orders", number)
            log.tail = CountingTail(broker.services.storage.memory, log.tail.rolled_offset)
            tails.append(log.tail)
        fetch = asyncio.create_task(broker.ask(FETCH, fetch_all(topic.id, min_bytes)))
        await asyncio.sleep(0.01)
        await append_to_each(broker, range(PARTITIONS))
        [response] = (await fetch).topics
        assert PARTITIONS < sum(tail.count for tail in tails) <= 2 * PARTITIONS
        assert with_records(response) == list(range(PARTITIONS))

    run_with_broker(body)


def test_fetch_waits_until_all_partitions_together_have_enough():
    async def body(broker):
        topic = await broker.topic("orders", PARTITIONS)
        request = fetch_all(topic.id, min_bytes=2 * len(BATCH))
        fetch = asyncio.create_task(broker.ask(FETCH, request))
        await asyncio.sleep(0.01)
        await append_to_each(broker, range(1))
        await asyncio.sleep(1)
        assert not fetch.done()
        await append_to_each(broker, range(PARTITIONS - 1, PARTITIONS))
        [response] = (await fetch).topics
        assert with_records(response) == [0, PARTITIONS - 1]

    run_with_broker(body)


def test_closed_log_wakes_the_fetch():
    async def body(broker):
        topic = await broker.topic("orders", PARTITIONS)
        fetch = asyncio.create_task(broker.ask(FETCH, fetch_all(topic.id, min_bytes=1 << 20)))
        await asyncio.sleep(0.01)
        broker.services.storage.remove(broker.log("orders", 3))
        async with asyncio.timeout(0.1):
            [response] = (await fetch).topics
        failed = [partition.index for partition in response.partitions if partition.error_code]
        assert failed == [3]

    run_with_broker(body)
