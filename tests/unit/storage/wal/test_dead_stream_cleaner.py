"""The dead stream cleaner: deletes unneeded WAL objects of ended sessions, in order."""

import asyncio

import pytest

from doubles.virtual_time import clock_ms
from kafscale.storage.wal.dead_stream_cleaner import (
    ABANDONED_MS,
    FENCE_RETENTION_MS,
    DeadStreamCleaner,
)
from kafscale.storage.wal.streams import Streams
from unit.storage.engines import (
    BROKER_ID,
    NAMESPACE,
    CountingStore,
    append,
    keys,
    memory_store,
    open_engine,
    read_offsets,
    roll,
    simulate,
    topic,
)
from unit.storage.sessions import OTHER_ID, FakeMetadataStore, is_fence, key_of


class DeadBroker:
    """A crashed broker with a stream, and a cleaner."""

    def __init__(self, store, metadata: FakeMetadataStore | None = None) -> None:
        self.store = store
        self.metadata = metadata or FakeMetadataStore()
        self.live: set[tuple[int, int]] = set()
        self._cleaner = DeadStreamCleaner(store, NAMESPACE, clock_ms)

    async def write_and_crash(self, *partitions: int) -> None:
        """Write a record to each partition, each in an object of its own, then crash."""
        engine = await open_engine(self.store, partitions=topic(3))
        for number in partitions:
            await append(engine, b"x", partition=number)
        engine.close()
        await Streams(self.store, NAMESPACE, clock_ms).fence(BROKER_ID, 0)

    async def clean(self, **ends: int | None) -> list[int]:
        """Clean; return the remaining sequences."""
        self.metadata.ends.update({int(name[1:]): end for name, end in ends.items()})
        await self._cleaner.clean(
            lambda _, number: self.metadata.ends.get(number, 0),
            lambda *session: session in self.live,
        )
        return [int(key[-24:-4]) for key in await keys(self.store, ".kfw")]


def test_objects_are_deleted_in_order_and_the_fence_stays():
    async def scenario():
        dead_broker = DeadBroker(memory_store())
        await dead_broker.write_and_crash(0, 1, 0, 2)
        assert await dead_broker.clean() == [1, 2, 3, 4, 5], "the first object is empty"
        assert await dead_broker.clean(p0=1) == [2, 3, 4, 5]
        assert await dead_broker.clean(p0=2) == [2, 3, 4, 5], (
            "the one of partition 1 is still needed"
        )
        assert await dead_broker.clean(p1=1) == [4, 5]
        assert await dead_broker.clean(p2=1) == [5]
        assert await is_fence(dead_broker.store, key_of(0, 5))
        await asyncio.sleep(FENCE_RETENTION_MS / 1000 - 10)
        assert await dead_broker.clean() == [5]
        await asyncio.sleep(20)
        assert await dead_broker.clean() == []

    simulate(scenario, time_max_s=FENCE_RETENTION_MS)


def test_needed_objects_are_kept_regardless_of_age():
    async def scenario():
        dead_broker = DeadBroker(memory_store())
        await dead_broker.write_and_crash(0)
        await asyncio.sleep(FENCE_RETENTION_MS / 1000 + 10)
        assert await dead_broker.clean() == [1, 2]

    simulate(scenario, time_max_s=FENCE_RETENTION_MS)


def test_objects_of_deleted_topics_are_deleted():
    async def scenario():
        dead_broker = DeadBroker(memory_store())
        await dead_broker.write_and_crash(0, 1, 2)
        assert await dead_broker.clean(p0=None, p1=None) == [3, 4]

    simulate(scenario)


def test_objects_after_the_fence_are_deleted_at_once():
    async def scenario():
        dead_broker = DeadBroker(memory_store())
        await dead_broker.write_and_crash(0)
        late = bytes(await dead_broker.store.get(key_of(0, 1)))
        for number in (3, 4):
            await dead_broker.store.put(key_of(0, number), [late])
        assert await dead_broker.clean() == [1, 2]

    simulate(scenario)


def test_footers_are_read_once():
    async def scenario():
        dead_broker = DeadBroker(CountingStore())
        await dead_broker.write_and_crash(0, 1, 2)
        await dead_broker.clean()
        assert dead_broker.store.requests["get_suffix"] == 3
        await dead_broker.clean()
        await dead_broker.clean(p0=1)
        assert dead_broker.store.requests["get_suffix"] == 3

    simulate(scenario)


def test_footer_larger_than_the_hint_is_read_completely():
    async def scenario():
        store = CountingStore()
        count = 1000
        engine = await open_engine(store, partitions=topic(count))
        await asyncio.gather(*(append(engine, b"x", partition=one) for one in range(count)))
        engine.close()
        await Streams(store, NAMESPACE, clock_ms).fence(BROKER_ID, 0)
        cleaner = DeadStreamCleaner(store, NAMESPACE, clock_ms)
        ends = dict.fromkeys(range(count), 1) | {500: 0}
        await cleaner.clean(lambda _, number: ends[number], lambda *_: False)
        assert store.requests["get_suffix"] == 2
        assert len(await keys(store, ".kfw")) == 2

    simulate(scenario)


def test_live_streams_are_not_touched():
    async def scenario():
        dead_broker = DeadBroker(memory_store())
        engine = await open_engine(dead_broker.store)
        await append(engine, b"a")
        dead_broker.live = {(BROKER_ID, 0)}
        await asyncio.sleep(2 * ABANDONED_MS / 1000)
        assert await dead_broker.clean(p0=1) == [0, 1]
        assert await append(engine, b"b") == 1

    simulate(scenario)


def test_abandoned_stream_is_fenced_and_deleted():
    async def scenario():
        dead_broker = DeadBroker(memory_store())
        engine = await open_engine(dead_broker.store, save_state=dead_broker.metadata.save)
        await append(engine, b"a")
        await engine.stop(flush_seconds=1, roll_seconds=1)
        assert await dead_broker.clean() == [2], "the trim marker"
        await asyncio.sleep(ABANDONED_MS / 1000 + 1)
        assert await dead_broker.clean() == [2, 3]
        assert await is_fence(dead_broker.store, key_of(0, 3))
        assert await dead_broker.clean() == [3]
        await asyncio.sleep(FENCE_RETENTION_MS / 1000 + 1)
        assert await dead_broker.clean() == []

    simulate(scenario, time_max_s=FENCE_RETENTION_MS)


def test_damaged_object_does_not_block_deletion():
    async def scenario():
        dead_broker = DeadBroker(memory_store())
        await dead_broker.write_and_crash(0, 1, 2)
        await dead_broker.store.put(key_of(0, 1), [b"damaged"], create=False)
        assert await dead_broker.clean(p1=1) == [3, 4]

    simulate(scenario)


@pytest.mark.parametrize("rolled", [False, True])
def test_records_needed_by_a_new_owner_are_not_deleted(rolled):
    async def scenario():
        dead_broker = DeadBroker(memory_store())
        await dead_broker.write_and_crash(0, 0, 0)
        successor = await open_engine(
            dead_broker.store,
            broker_id=OTHER_ID,
            partitions=[dead_broker.metadata.to_open()],
            save_state=dead_broker.metadata.save,
        )
        dead_broker.live = {(OTHER_ID, 0)}
        if rolled:
            await roll(successor)
        await dead_broker.clean()
        successor.close()
        await Streams(dead_broker.store, NAMESPACE, clock_ms).fence(OTHER_ID, 0)
        third = await open_engine(
            dead_broker.store, broker_id=9, partitions=[dead_broker.metadata.to_open()]
        )
        assert await read_offsets(third) == [0, 1, 2]

    simulate(scenario)
