"""`StorageEngine`: sessions, stop, release and background work."""

import asyncio
from random import Random

import pytest

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from doubles.virtual_time import clock_ms
from kafscale.errors import FencedError, NotOwnerError, OperatingError
from kafscale.storage.engine import RELEASE_PAUSE_SECONDS, RELEASE_REST_BYTES
from kafscale.storage.segments.segment_writer import RollReason
from unit.storage.engines import (
    TOPIC,
    Epochs,
    append,
    keys,
    log_settings,
    memory_store,
    open_engine,
    read_offsets,
    simulate,
    start_engine,
    topic,
    values_batch,
)
from unit.storage.sessions import OTHER_ID, FakeMetadataStore, crash_session


def test_stop_rolls_everything():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        engine = await open_engine(store, epochs)
        log = engine.logs.get(TOPIC, 0)
        log.append(values_batch([b"a"]), clock_ms())
        await engine.stop(flush_seconds=1, roll_seconds=1)
        assert len(await keys(store, ".kfs")) == 1
        assert len(await keys(store, ".kfw")) == 1
        engine = await open_engine(store, epochs)
        assert await read_offsets(engine) == [0]
        assert engine.memory.used_bytes == 0

    simulate(scenario)


def test_stop_ends_if_the_store_is_down():
    async def scenario():
        store = FaultyObjectStore(memory_store(), random=Random(0))
        engine = await open_engine(store)
        store.is_down = True
        waiting = asyncio.ensure_future(append(engine, b"a"))
        await asyncio.sleep(0.1)
        await engine.stop(flush_seconds=5, roll_seconds=5)
        (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
        assert isinstance(outcome, NotOwnerError)

    simulate(scenario)


def test_stop_after_being_fenced_changes_nothing():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        engine = await open_engine(store, epochs)
        await append(engine, b"a")
        await open_engine(store, epochs)
        with pytest.raises(FencedError):
            await append(engine, b"too late")
        before = await keys(store)
        await engine.stop(flush_seconds=1, roll_seconds=1)
        assert await keys(store) == before

    simulate(scenario)


def test_engine_that_was_not_opened_can_be_closed():
    async def scenario():
        store = FaultyObjectStore(memory_store(), random=Random(0))
        engine = await open_engine(store)
        fresh = type(engine)(
            store,
            "test",
            7,
            engine._settings,
            save_state=engine.retention._save_state,
            clock=clock_ms,
            random=Random(0),
        )
        fresh.close()

    simulate(scenario)


def test_retention_and_rolls_run_in_the_background():
    async def scenario():
        store = memory_store()
        partitions = topic(settings=log_settings(segment_ms=1000, retention_ms=5000))
        engine = await open_engine(store, partitions=partitions, retention_check_interval_ms=1000)
        running = asyncio.ensure_future(engine.run())
        await append(engine, b"a", timestamp_ms=clock_ms())
        await asyncio.sleep(3)
        assert len(await keys(store, ".kfs")) == 1
        await asyncio.sleep(5)
        assert await keys(store, ".kfs") == []
        assert engine.logs.get(TOPIC, 0).start_offset == 1
        running.cancel()

    simulate(scenario)


# --- sessions -------------------------------------------------------------------------------------


def test_engine_runs_several_sessions_in_sequence():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        engine = await open_engine(store, epochs)
        running = asyncio.ensure_future(engine.run())
        for number in range(3):
            assert await append(engine, b"x") == number
            log = engine.logs.get(TOPIC, 0)
            before = engine.wal
            engine.end_session()
            assert log.closed
            assert list(engine.logs) == []
            assert (engine.memory.used_bytes, len(engine.trimmer)) == (0, 0)
            await engine.start_session(await epochs.take(0))
            assert engine.wal is not before
            assert not engine.wal.fenced.done()
            await engine.open(topic())
        assert await read_offsets(engine) == [0, 1, 2]
        await engine.roll_scheduler.roll(engine.logs.get(TOPIC, 0), RollReason.EXPLICIT)
        running.cancel()

    simulate(scenario)


def test_pending_appends_fail_when_the_session_ends():
    async def scenario():
        store = FaultyObjectStore(memory_store(), random=Random(0))
        engine = await open_engine(store)
        store.is_down = True
        log = engine.logs.get(TOPIC, 0)
        woken = []
        log.watch(lambda closed: woken.append(closed.closed))
        waiting = asyncio.ensure_future(append(engine, b"a"))
        await asyncio.sleep(0.1)
        engine.end_session()
        engine.end_session()
        with pytest.raises(NotOwnerError):
            await waiting
        with pytest.raises(NotOwnerError):
            log.append(values_batch([b"b"]), clock_ms())
        assert woken == [True]
        await engine.stop(flush_seconds=1, roll_seconds=1)

    simulate(scenario)


def test_logs_opened_when_the_session_ends_are_not_served():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crash_session(store, epochs, b"a")
        engine = await start_engine(store, epochs)
        opening = asyncio.ensure_future(engine.open(topic()))
        await asyncio.sleep(0)
        engine.end_session()
        with pytest.raises(NotOwnerError):
            await opening
        assert list(engine.logs) == []
        assert engine.memory.used_bytes == 0

    simulate(scenario)


# --- release --------------------------------------------------------------------------------------


def test_released_log_needs_no_wal():
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        engine = await open_engine(store, partitions=[metadata.to_open()], save_state=metadata.save)
        log = engine.logs.get(TOPIC, 0)
        log.append(values_batch([b"a"]), clock_ms())
        releasing = asyncio.ensure_future(engine.release(log))
        await asyncio.sleep(0)
        with pytest.raises(NotOwnerError):
            log.append(values_batch([b"b"]), clock_ms())
        await releasing
        assert metadata.ends == {0: 1}
        assert await read_offsets(engine) == [0], "reads continue"
        successor = await start_engine(store, broker_id=OTHER_ID)
        await store.delete(await keys(store, ".kfw"))
        await successor.open([metadata.to_open(fully_rolled=True)])
        engine.remove(log)
        assert await read_offsets(successor) == [0]
        assert await append(successor, b"b") == 1

    simulate(scenario)


@pytest.mark.parametrize("way", ["cancelled", "refused"])
def test_log_that_could_not_be_released_accepts_appends(way):
    async def scenario():
        store, metadata = FaultyObjectStore(memory_store(), random=Random(0)), FakeMetadataStore()
        engine = await open_engine(store, partitions=[metadata.to_open()], save_state=metadata.save)
        await append(engine, b"a")
        log = engine.logs.get(TOPIC, 0)
        if way == "cancelled":
            store.rules = [Rule(fault=Fault.SLOW, seconds=(9, 9))]
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(5):
                    await engine.release(log)
            store.rules = []
        else:
            metadata.leader_epochs[0] = 1
            with pytest.raises(NotOwnerError):
                await engine.release(log)
        assert await append(engine, b"b") == 1

    simulate(scenario)


@pytest.mark.parametrize("fault", [Fault.DENIED, Fault.SLOW])
def test_release_without_segments_rejects_appends_for_a_second_at_most(fault):
    """The WAL works: producers must not wait for a store that takes no segments."""

    async def scenario():
        store, metadata = FaultyObjectStore(memory_store(), random=Random(0)), FakeMetadataStore()
        engine = await open_engine(store, partitions=[metadata.to_open()], save_state=metadata.save)
        await append(engine, b"a")
        store.rules = [Rule(fault=fault, keys="*.kfs", seconds=(30, 30))]
        log = engine.logs.get(TOPIC, 0)
        releasing = asyncio.ensure_future(engine.release(log))
        loop = asyncio.get_running_loop()
        refused_since, refused = None, 0.0
        for _ in range(1000):
            try:
                await append(engine, b"b")
                refused_since = None
            except NotOwnerError:
                refused_since = refused_since or loop.time()
                refused = max(refused, loop.time() - refused_since)
            await asyncio.sleep(0.1)
        assert refused <= RELEASE_PAUSE_SECONDS
        assert (refused > 0) is (fault is Fault.SLOW)
        assert isinstance(releasing.exception(), OperatingError), "it can be tried again"
        store.rules = []
        await engine.release(log)
        assert log.tail.rolled_offset == log.end_offset > 500

    simulate(scenario)


def test_release_rolls_most_of_a_large_log_before_it_rejects_appends():
    async def scenario():
        store = FaultyObjectStore(memory_store(), random=Random(0))
        engine = await open_engine(store)
        log = engine.logs.get(TOPIC, 0)
        for _ in range(4):
            await append(engine, bytes(RELEASE_REST_BYTES))
        store.rules = [Rule(fault=Fault.SLOW, keys="*.kfs", seconds=(0.9, 0.9))]
        releasing = asyncio.ensure_future(engine.release(log))
        await asyncio.sleep(0.5)
        # More than a segment in the pause would be too slow.
        await append(engine, bytes(2 * RELEASE_REST_BYTES))
        await asyncio.sleep(1)
        await append(engine, b"accepted, because the rest was too large")
        await releasing
        assert log.tail.rolled_offset == log.end_offset == 6

    simulate(scenario)


def test_release_waits_for_appends_in_flight():
    async def scenario():
        store = FaultyObjectStore(memory_store(), random=Random(0))
        engine = await open_engine(store)
        store.rules = [Rule(fault=Fault.REFUSED, keys="*.kfw", times_max=3)]
        log = engine.logs.get(TOPIC, 0)
        waiting = [asyncio.ensure_future(append(engine, b"x")) for _ in range(3)]
        await asyncio.sleep(0)
        await engine.release(log)
        assert sorted(await asyncio.gather(*waiting)) == [0, 1, 2]
        assert log.tail.rolled_offset == 3

    simulate(scenario)


def test_removed_log_keeps_its_wal_objects():
    async def scenario():
        store = memory_store()
        engine = await open_engine(store, partitions=topic(2))
        await append(engine, b"a")
        await append(engine, b"b", partition=1)
        engine.remove(engine.logs.get(TOPIC, 0))
        await engine.stop(flush_seconds=1, roll_seconds=1)
        assert await read_offsets(await open_engine(store, Epochs())) == [0]

    simulate(scenario)
