"""The dead stream cleaner: deletes unneeded WAL objects of ended sessions, in order."""

import asyncio

import pytest

from doubles.virtual_time import clock_ms
from kafscale.storage.formats import wal_object
from kafscale.storage.wal.dead_stream_cleaner import (
    ABANDONED_MS,
    FENCE_RETENTION_MS,
    READ_AHEAD,
    DeadStreamCleaner,
    Session,
)
from kafscale.storage.wal.streams import Streams
from unit.storage.engines import (
    BROKER_ID,
    NAMESPACE,
    TOPIC_ID,
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

    def __init__(self, store, **settings: int) -> None:
        self.store = store
        self.metadata = FakeMetadataStore()
        self.live: set[tuple[int, int]] = set()
        self.unknown: set[tuple[int, int]] = set()
        self.is_deleted = False
        self.is_known = True
        self._cleaner = DeadStreamCleaner(store, NAMESPACE, clock_ms, **settings)

    async def write_and_crash(self, *partitions: int) -> None:
        """Write a record to each partition, each in an object of its own, then crash."""
        engine = await open_engine(self.store, partitions=topic(3))
        for number in partitions:
            await append(engine, b"x", partition=number)
        engine.close()
        await Streams(self.store, NAMESPACE, clock_ms).fence(BROKER_ID, 0)

    async def clean(self, **ends: int) -> list[int]:
        """Clean; return the remaining sequences."""
        self.metadata.ends.update({int(name[1:]): end for name, end in ends.items()})
        self.result = await self._cleaner.clean(self._rolled_ends, self._session)
        wal = [key for key in await keys(self.store, ".kfw") if "_quarantine" not in key]
        return [int(key[-24:-4]) for key in wal]

    async def _rolled_ends(self, topic_ids):
        """Only one topic is known, if any."""
        if not self.is_known or TOPIC_ID not in topic_ids:
            return {}
        return {TOPIC_ID: None if self.is_deleted else self.metadata.ends}

    def _session(self, *session: int) -> Session:
        if session in self.unknown:
            return Session.UNKNOWN
        return Session.LIVE if session in self.live else Session.ENDED


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
        dead_broker.is_deleted = True
        assert await dead_broker.clean() == [4]

    simulate(scenario)


def test_objects_of_unknown_topics_are_kept_for_ever():
    async def scenario():
        dead_broker = DeadBroker(memory_store())
        await dead_broker.write_and_crash(0, 1)
        dead_broker.is_known = False
        assert await dead_broker.clean(p0=1, p1=1) == [1, 2, 3]
        await asyncio.sleep(2 * FENCE_RETENTION_MS / 1000)
        assert await dead_broker.clean() == [1, 2, 3]
        assert dead_broker.result.unknown_topics == {TOPIC_ID}
        assert dead_broker.result.unknown_objects == 2
        dead_broker.is_known = True
        assert await dead_broker.clean() == []

    simulate(scenario, time_max_s=FENCE_RETENTION_MS)


def test_object_of_an_unknown_topic_does_not_hold_up_others():
    async def scenario():
        dead_broker = DeadBroker(memory_store())
        await dead_broker.write_and_crash(0, 1, 2)
        foreign = wal_object.PartitionData(b"?" * 16, "foreign", 0, b"records", 0, 0, 0)
        parts = wal_object.encode(wal_object.Header(BROKER_ID, 0, 2, 0), [foreign])
        await dead_broker.store.put(key_of(0, 2), parts, create=False)
        assert await dead_broker.clean(p0=1) == [2, 3, 4]
        assert await dead_broker.clean(p2=1) == [2, 4]

    simulate(scenario)


def test_oldest_object_with_records_is_one_whose_topics_matter():
    async def scenario():
        dead_broker = DeadBroker(memory_store())
        await dead_broker.write_and_crash(0)
        written_ms = clock_ms()
        await dead_broker.clean()
        assert dead_broker.result.oldest_records_ms == pytest.approx(written_ms, abs=1000)
        dead_broker.is_known = False
        await dead_broker.clean()
        assert dead_broker.result.oldest_records_ms is None, "it is kept in any case"
        engine = await open_engine(dead_broker.store, broker_id=OTHER_ID)
        dead_broker.live = {(OTHER_ID, 0)}
        await asyncio.sleep(100)
        await append(engine, b"a")
        await dead_broker.clean()
        assert dead_broker.result.oldest_records_ms == pytest.approx(clock_ms(), abs=1000)

    simulate(scenario)


def test_unknown_stream_is_neither_fenced_nor_cleaned():
    async def scenario():
        dead_broker = DeadBroker(memory_store())
        engine = await open_engine(dead_broker.store)
        await append(engine, b"a")
        dead_broker.unknown = {(BROKER_ID, 0)}
        await asyncio.sleep(2 * FENCE_RETENTION_MS / 1000)
        assert await dead_broker.clean(p0=1) == [0, 1]
        assert dead_broker.result.unknown_streams == {(BROKER_ID, 0)}
        assert await append(engine, b"b") == 1, "its owner still works"
        engine.close()
        await Streams(dead_broker.store, NAMESPACE, clock_ms).fence(BROKER_ID, 0)
        assert await dead_broker.clean(p0=2) == [0, 1, 2, 3]

    simulate(scenario, time_max_s=FENCE_RETENTION_MS)


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


def test_fences_are_read_once():
    async def scenario():
        dead_broker = DeadBroker(CountingStore())
        await dead_broker.write_and_crash()
        await dead_broker.clean()
        before = dead_broker.store.requests["get"]
        await dead_broker.clean()
        await dead_broker.clean()
        assert dead_broker.store.requests["get"] == before

    simulate(scenario)


def test_ranges_in_memory_are_bounded():
    """Footers that do not fit are read again; the result is the same."""

    async def scenario():
        dead_broker = DeadBroker(CountingStore(), pins_max=2 * READ_AHEAD)
        await dead_broker.write_and_crash(*[0] * 3 * READ_AHEAD)
        dead_broker.is_known = False
        before = await dead_broker.clean()
        assert dead_broker.store.requests["get_suffix"] == 3 * READ_AHEAD
        assert await dead_broker.clean() == before
        assert dead_broker.store.requests["get_suffix"] == 4 * READ_AHEAD

    simulate(scenario)


def test_footer_larger_than_the_hint_is_read_completely():
    async def scenario():
        store = CountingStore()
        count = 1200
        engine = await open_engine(store, partitions=topic(count))
        await asyncio.gather(*(append(engine, b"x", partition=one) for one in range(count)))
        engine.close()
        await Streams(store, NAMESPACE, clock_ms).fence(BROKER_ID, 0)
        cleaner = DeadStreamCleaner(store, NAMESPACE, clock_ms)
        ends = dict.fromkeys(range(count), 1) | {500: 0}

        async def rolled_ends(topic_ids):
            return dict.fromkeys(topic_ids, ends)

        await cleaner.clean(rolled_ends, lambda *_: Session.ENDED)
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


def test_damaged_object_is_copied_and_kept_until_the_fence_is_deleted():
    async def scenario():
        dead_broker = DeadBroker(memory_store())
        await dead_broker.write_and_crash(0, 1, 2)
        await dead_broker.store.put(key_of(0, 1), [b"damaged"], create=False)
        for _ in range(2):
            assert await dead_broker.clean(p1=1) == [1, 3, 4], "it blocks no other object"
            assert dead_broker.result.damaged_objects == 1
        assert await dead_broker.clean(p2=1) == [1, 4]
        await asyncio.sleep(FENCE_RETENTION_MS / 1000 + 1)
        assert await dead_broker.clean() == []
        [copy] = await keys(dead_broker.store, ".kfw")
        assert "/_quarantine/" in copy
        assert bytes(await dead_broker.store.get(copy)) == b"damaged"

    simulate(scenario, time_max_s=FENCE_RETENTION_MS)


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
