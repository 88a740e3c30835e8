"""The storage of a broker as a whole: how its lives begin and end."""

import asyncio
from random import Random

import pytest

from kafscale.errors import FencedError, NotOwnerError
from kafscale.storage.objects.faulty import FaultyObjectStore
from kafscale.testing.virtual_time import clock_ms
from unit.storage.engines import (
    TOPIC,
    Epochs,
    append,
    keys,
    log_settings,
    memory_store,
    opened,
    read_offsets,
    simulate,
    topic,
    values_batch,
)


def test_after_a_stop_segments_hold_everything():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        engine = await opened(store, epochs)
        log = engine.logs.find(TOPIC, 0)
        log.append(values_batch([b"a"]), clock_ms())
        await engine.stop(flush_seconds=1, roll_seconds=1)
        assert len(await keys(store, ".kfs")) == 1
        assert len(await keys(store, ".kfw")) == 1
        engine = await opened(store, epochs)
        assert await read_offsets(engine) == [0]
        assert engine.memory.used_bytes == 0

    simulate(scenario)


def test_a_stop_ends_although_the_store_is_down():
    async def scenario():
        store = FaultyObjectStore(memory_store(), random=Random(0))
        engine = await opened(store)
        store.is_down = True
        waiting = asyncio.ensure_future(append(engine, b"a"))
        await asyncio.sleep(0.1)
        await engine.stop(flush_seconds=5, roll_seconds=5)
        (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
        assert isinstance(outcome, NotOwnerError)

    simulate(scenario)


def test_a_stop_leaves_everything_to_the_broker_that_has_taken_over():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        engine = await opened(store, epochs)
        await append(engine, b"a")
        await opened(store, epochs)
        with pytest.raises(FencedError):
            await append(engine, b"too late")
        before = await keys(store)
        await engine.stop(flush_seconds=1, roll_seconds=1)
        assert await keys(store) == before

    simulate(scenario)


def test_an_engine_that_did_not_open_can_be_closed():
    async def scenario():
        store = FaultyObjectStore(memory_store(), random=Random(0))
        engine = await opened(store)
        fresh = type(engine)(
            store, "test", 7, engine._settings, save=engine.retention._save, clock=clock_ms,
            random=Random(0),
        )  # fmt: skip
        fresh.close()

    simulate(scenario)


def test_retention_and_rolls_go_on_by_themselves():
    async def scenario():
        store = memory_store()
        to_open = topic(settings=log_settings(segment_ms=1000, retention_ms=5000))
        engine = await opened(store, to_open=to_open, retention_check_interval_ms=1000)
        running = asyncio.ensure_future(engine.run())
        await append(engine, b"a", timestamp_ms=clock_ms())
        await asyncio.sleep(3)
        assert len(await keys(store, ".kfs")) == 1
        await asyncio.sleep(5)
        assert await keys(store, ".kfs") == []
        assert engine.logs.find(TOPIC, 0).start_offset == 1
        running.cancel()

    simulate(scenario)
