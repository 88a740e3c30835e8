"""Fetch of damaged logs: other partitions are not affected."""

from random import Random

from doubles import virtual_time
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.fetch import FETCH, FetchRequest, PartitionToFetch, TopicToFetch
from kafscale.records import split
from kafscale.storage.formats import wal_object
from unit.broker.in_memory_broker import InMemoryBroker, Stores, running_broker


async def fetch(broker: InMemoryBroker, *names: str) -> list[tuple[int, list[int]]]:
    """The error code and the base offsets of partition 0 of each topic, from offset 0."""
    topics = [
        TopicToFetch(
            topic_id=broker.services.topic_store.get(name).id,
            partitions=[PartitionToFetch(index=0, offset=0, max_bytes=1000)],
        )
        for name in names
    ]
    request = FetchRequest(max_wait_ms=0, session_epoch=-1, topics=topics)
    response = await broker.ask(FETCH, request)
    assert response.error_code == 0
    return [
        (partition.error_code, [batch.base_offset for batch in split(b"".join(partition.records))])
        for topic in response.topics
        for partition in topic.partitions
    ]


async def flip(stores: Stores, key: str, position: int) -> None:
    data = bytearray(await stores.objects.get(key))
    data[position] ^= 1
    await stores.objects.put(key, [bytes(data)], create=False)


async def keys(stores: Stores, suffix: str) -> list[str]:
    listed = [item.key async for chunk in stores.objects.list("default/") for item in chunk]
    return [key for key in listed if key.endswith(suffix)]


def test_log_without_segments_and_with_a_gap_before_its_tail():
    async def scenario(_random: Random) -> None:
        stores = Stores()
        async with running_broker(stores) as broker:
            await broker.topic("orders")
            await broker.topic("healthy")
            for _ in range(3):
                await broker.write("orders", virtual_time.clock_ms())
            await broker.write("healthy", virtual_time.clock_ms())
        damaged = (await keys(stores, ".kfw"))[1]
        (range_,) = wal_object.decode(damaged, await stores.objects.get(damaged)).ranges
        await flip(stores, damaged, range_.position + range_.length - 1)
        async with running_broker(stores) as broker:
            log = broker.log("orders")
            assert not len(log.segments)
            assert log.tail.start_offset == 1
            assert await fetch(broker, "orders", "healthy") == [(0, [1, 2]), (0, [0])]

    virtual_time.run(scenario, seed=0)


class BrokenStore:
    """A store with a programming error, which affects the segments of one topic."""

    def __init__(self, inner) -> None:
        self._inner = inner

    def __getattr__(self, name: str):
        return getattr(self._inner, name)

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        if "/orders/" in key:
            raise IndexError
        return await self._inner.get_range(key, start, stop)


def test_unexpected_error_of_one_partition_leaves_the_others_alone():
    async def scenario(_random: Random) -> None:
        stores = Stores()
        stores.objects = BrokenStore(stores.objects)
        async with running_broker(stores) as broker:
            for name in ("orders", "healthy"):
                await broker.topic(name)
                await broker.write(name, virtual_time.clock_ms())
                await broker.roll(name)
                broker.log(name).tail.evict()
            unknown = ErrorCode.UNKNOWN_SERVER_ERROR
            assert await fetch(broker, "orders", "healthy") == [(unknown, []), (0, [0])]

    virtual_time.run(scenario, seed=0)


def test_damaged_batch_is_answered_with_corrupt_message():
    async def scenario(_random: Random) -> None:
        stores = Stores()
        async with running_broker(stores) as broker:
            for name in ("orders", "healthy"):
                await broker.topic(name)
                await broker.write(name, virtual_time.clock_ms())
                await broker.roll(name)
                broker.log(name).tail.evict()
            (key,) = [key for key in await keys(stores, ".kfs") if "orders" in key]
            await flip(stores, key, 100)
            corrupt = ErrorCode.CORRUPT_MESSAGE
            assert await fetch(broker, "orders", "healthy") == [(corrupt, []), (0, [0])]
            assert broker.services.storage.counters.damaged_reads == 1

    virtual_time.run(scenario, seed=0)
