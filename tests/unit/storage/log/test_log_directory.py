"""`LogDirectory`: adding, finding, removing and deleting logs."""

import asyncio

import pytest

from unit.storage.engines import (
    TOPIC,
    TOPIC_ID,
    CountingStore,
    append,
    keys,
    log_settings,
    memory_store,
    open_engine,
    read_offsets,
    roll,
    simulate,
    to_open,
    topic,
)

OTHER_ID = bytes(15) + b"\x02"


def test_recreated_topic_starts_empty():
    async def scenario():
        store = memory_store()
        engine = await open_engine(store)
        await append(engine, b"old")
        await roll(engine)
        before = engine.logs.get(TOPIC, 0)
        while before.tail.evict():
            pass
        reading = asyncio.ensure_future(read_offsets(engine))
        await asyncio.sleep(0)
        engine.close_topic(TOPIC_ID, TOPIC, TOPIC)
        assert await engine.delete_objects(TOPIC) == 2
        await asyncio.gather(reading, return_exceptions=True)
        await engine.open(topic(topic_id=OTHER_ID, is_new=True))
        log = engine.logs.get(TOPIC, 0)
        assert (log.start_offset, log.high_watermark) == (0, 0)
        assert await append(engine, b"new") == 0
        await roll(engine)
        while log.tail.evict():
            pass
        result, _ = await engine.reader.read(log, 0, 1000, first=True)
        assert b"new" in b"".join(result)
        assert len(await keys(store, ".kfs")) == 1

    simulate(scenario)


def test_wal_records_of_a_deleted_topic_are_not_given_to_its_successor():
    async def scenario():
        store = memory_store()
        engine = await open_engine(store)
        await append(engine, b"old")
        engine.close()
        engine = await open_engine(store, partitions=topic(topic_id=OTHER_ID))
        assert engine.logs.get(TOPIC, 0).high_watermark == 0

    simulate(scenario)


def test_directory_serves_some_partitions_of_a_topic():
    async def scenario():
        store = CountingStore()
        engine = await open_engine(store)
        await append(engine, b"a")
        store.requests.clear()
        await engine.open([to_open(2, is_new=True)])
        assert not store.requests, "a new log is not listed"
        assert await append(engine, b"b", partition=2) == 0
        assert await append(engine, b"c") == 1
        assert engine.logs.find_by_id(TOPIC_ID, 2) is engine.logs.get(TOPIC, 2)
        assert engine.logs.find_by_id(TOPIC_ID, 1) is None
        assert engine.logs.get(TOPIC, 1) is None
        assert [log.partition for log in engine.logs.of_topic(TOPIC)] == [0, 2]
        assert len(engine.logs) == 2

    simulate(scenario)


def test_removed_log_can_be_opened_again():
    async def scenario():
        engine = await open_engine(memory_store())
        await append(engine, b"a")
        log = engine.logs.get(TOPIC, 0)
        await engine.release(log)
        engine.remove(log)
        engine.remove(log)
        assert engine.logs.of_topic(TOPIC) == []
        (again,) = await engine.open([to_open(fully_rolled=True)])
        engine.remove(log)
        assert engine.logs.get(TOPIC, 0) is again
        assert await read_offsets(engine) == [0]

    simulate(scenario)


def test_configure_updates_every_partition():
    async def scenario():
        engine = await open_engine(memory_store(), partitions=topic(2))
        engine.logs.configure(TOPIC, log_settings(retention_ms=5))
        assert [log.settings.retention_ms for log in engine.logs] == [5, 5]

    simulate(scenario)


@pytest.mark.parametrize(("name", "partition"), [("other", 0), (TOPIC, 1), (TOPIC, -1)])
def test_get_returns_none_for_unknown_partitions(name, partition):
    async def scenario():
        engine = await open_engine(memory_store())
        assert engine.logs.get(name, partition) is None

    simulate(scenario)
