"""How topics come and go."""

import asyncio

import pytest

from kafscale.errors import UnknownTopicError
from unit.storage.engines import (
    TOPIC,
    TOPIC_ID,
    append,
    keys,
    log_settings,
    memory_store,
    opened,
    read_offsets,
    roll,
    simulate,
    topic,
)

OTHER_ID = bytes(15) + b"\x02"


def test_a_topic_that_is_created_again_begins_empty():
    async def scenario():
        store = memory_store()
        engine = await opened(store)
        await append(engine, b"old")
        await roll(engine)
        before = engine.logs.find(TOPIC, 0)
        while before.tail.evict():
            pass
        reading = asyncio.ensure_future(read_offsets(engine))
        await asyncio.sleep(0)
        engine.logs.close(TOPIC)
        assert await engine.logs.delete_objects(TOPIC, [before]) == 2
        await asyncio.gather(reading, return_exceptions=True)
        engine.logs.create(topic(id=OTHER_ID))
        log = engine.logs.find(TOPIC, 0)
        assert (log.start_offset, log.high_watermark) == (0, 0)
        assert await append(engine, b"new") == 0
        await roll(engine)
        while log.tail.evict():
            pass
        found, _ = await engine.reader.read(log, 0, 1000, first=True)
        assert b"new" in b"".join(found)
        assert len(await keys(store, ".kfs")) == 1

    simulate(scenario)


def test_what_the_wal_holds_of_a_deleted_topic_is_not_given_to_its_successor():
    async def scenario():
        store = memory_store()
        engine = await opened(store)
        await append(engine, b"old")
        engine.close()
        engine = await opened(store, to_open=topic(id=OTHER_ID))
        assert engine.logs.find(TOPIC, 0).high_watermark == 0

    simulate(scenario)


def test_a_topic_grows():
    async def scenario():
        engine = await opened(memory_store())
        await append(engine, b"a")
        engine.logs.create(topic(3))
        assert await append(engine, b"b", partition=2) == 0
        assert await append(engine, b"c") == 1
        assert engine.logs.find_by_id(TOPIC_ID, 2) is engine.logs.find(TOPIC, 2)
        assert engine.logs.find_by_id(TOPIC_ID, 3) is None
        assert len(list(engine.logs)) == 3

    simulate(scenario)


def test_settings_reach_every_partition():
    async def scenario():
        engine = await opened(memory_store(), to_open=topic(2))
        engine.logs.configure(TOPIC, log_settings(retention_ms=5))
        assert [log.settings.retention_ms for log in engine.logs] == [5, 5]

    simulate(scenario)


@pytest.mark.parametrize(("name", "partition"), [("other", 0), (TOPIC, 1), (TOPIC, -1)])
def test_what_does_not_exist_is_not_found(name, partition):
    async def scenario():
        engine = await opened(memory_store())
        with pytest.raises(UnknownTopicError):
            engine.logs.find(name, partition)

    simulate(scenario)
