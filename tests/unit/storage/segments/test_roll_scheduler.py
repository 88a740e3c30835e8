"""The roll scheduler: which logs are rolled, and when."""

import asyncio
from random import Random

import pytest

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from doubles.virtual_time import clock_ms
from kafscale.errors import OverloadedError, StoreUnavailableError
from kafscale.storage.segments.roll_scheduler import RETRY_SECONDS_MAX, RollLimits
from kafscale.storage.segments.segment_writer import RollReason
from unit.storage.engines import (
    TOPIC,
    append,
    keys,
    log_settings,
    memory_store,
    open_engine,
    read_offsets,
    simulate,
    topic,
)


async def working(store, settings=None, **bounds):
    """An engine with its background tasks."""
    limits = {"tail_bytes_max": 10**9, "wal_bytes_max": 10**9, "segment_age_ms_max": 10**9}
    engine = await open_engine(
        store,
        partitions=topic(2, settings=settings or log_settings()),
        limits=RollLimits(**(limits | bounds)),
    )
    return engine, asyncio.ensure_future(engine.run())


def test_full_segment_is_rolled_at_once():
    async def scenario():
        engine, running = await working(memory_store(), log_settings(segment_bytes=150))
        for _ in range(5):
            await append(engine, b"x")
        await asyncio.sleep(0.1)
        assert engine.counters.segments_rolled["bytes"] == 2
        assert engine.logs.get(TOPIC, 0).tail.rolled_offset == 4
        running.cancel()

    simulate(scenario)


def test_refused_partitions_do_not_delay_the_others():
    async def scenario():
        refused = Rule(fault=Fault.REFUSED, operations=frozenset({"put"}), keys="*/[0-5]/segment-*")
        store = FaultyObjectStore(memory_store(), random=Random(0))
        engine = await open_engine(
            store,
            partitions=topic(8, settings=log_settings(retention_ms=60_000)),
            limits=RollLimits(tail_bytes_max=10**9, wal_bytes_max=10**9, segment_age_ms_max=5000),
        )
        running = asyncio.ensure_future(engine.run())
        store.rules = [refused]
        for partition in range(8):
            await append(engine, b"x", partition=partition, timestamp_ms=clock_ms())
        await asyncio.sleep(10)
        rolled = [engine.logs.get(TOPIC, number).tail.rolled_offset for number in range(8)]
        assert rolled == [0] * 6 + [1] * 2
        await asyncio.sleep(600)
        starts = [engine.logs.get(TOPIC, number).start_offset for number in range(8)]
        assert starts == [0] * 6 + [1] * 2, "retention of the others continues"
        store.rules = []
        await asyncio.sleep(2 * RETRY_SECONDS_MAX)
        assert all(log.tail.rolled_offset == 1 for log in engine.logs)
        running.cancel()

    simulate(scenario)


def test_nothing_is_written_or_deleted_without_a_lease():
    """A broker that is cut off from the metadata store may have been replaced."""

    async def scenario():
        store, has_lease = memory_store(), [True]
        engine = await open_engine(
            store,
            partitions=topic(settings=log_settings(retention_ms=60_000)),
            is_lease_valid=lambda: has_lease[0],
            limits=RollLimits(tail_bytes_max=10**9, wal_bytes_max=10**9, segment_age_ms_max=5000),
        )
        running = asyncio.ensure_future(engine.run())
        await append(engine, b"a", timestamp_ms=clock_ms())
        await asyncio.sleep(10)
        await append(engine, b"b", timestamp_ms=clock_ms())
        has_lease[0] = False
        before = await keys(store)
        await asyncio.sleep(1800)
        with pytest.raises(StoreUnavailableError, match="has not confirmed this broker's lease"):
            await engine.delete_objects(TOPIC)
        assert await keys(store) == before
        has_lease[0] = True
        await asyncio.sleep(300)
        assert await keys(store, ".kfs") == []
        running.cancel()

    simulate(scenario)


def test_log_is_rolled_by_age():
    async def scenario():
        engine, running = await working(memory_store(), segment_age_ms_max=5000)
        await append(engine, b"x")
        await asyncio.sleep(4)
        assert not engine.counters.segments_rolled
        await asyncio.sleep(3)
        assert engine.counters.segments_rolled == {"age": 1}
        running.cancel()

    simulate(scenario)


def test_tail_memory_is_bounded_without_losing_records():
    async def scenario():
        engine, running = await working(memory_store(), tail_bytes_max=5000)
        for number in range(30):
            await append(engine, b"x" * 200, partition=number % 2)
            await asyncio.sleep(0.1)
            assert engine.memory.used_bytes <= 7000
        assert engine.counters.segments_rolled["memory"] > 0
        assert await read_offsets(engine) == list(range(15))
        running.cancel()

    simulate(scenario)


def test_rolled_records_stay_in_memory_borrowed_from_the_block_cache():
    """The limit of unrolled records is the same; only rolled ones may use more."""

    async def scenario():
        engine, running = await working(
            memory_store(), tail_bytes_max=5000, borrowed_bytes_max=10_000
        )
        for number in range(60):
            await append(engine, b"x" * 200, partition=number % 2)
            await asyncio.sleep(0.1)
            assert engine.memory.used_bytes <= 17_000
            assert engine.memory.pinned_bytes <= 7000
        assert engine.memory.used_bytes > 12_000
        first, second = (engine.logs.get(TOPIC, number).tail for number in range(2))
        assert 0 < first.start_offset == pytest.approx(second.start_offset, abs=1)
        assert await read_offsets(engine) == list(range(30))
        running.cancel()

    simulate(scenario)


def test_block_cache_shrinks_by_what_tails_borrow():
    """At most what may be borrowed, and all of it is returned."""

    async def scenario():
        engine, running = await working(
            memory_store(), tail_bytes_max=5000, borrowed_bytes_max=10_000
        )
        borrowed: list[int] = []
        engine.roll_scheduler._borrow = borrowed.append
        for _ in range(60):
            await append(engine, b"x" * 200)
            await asyncio.sleep(0.1)
        assert (min(borrowed), max(borrowed) <= 10_000) == (0, True)
        assert borrowed[-1] == engine.memory.used_bytes - 5000 > 0
        log = engine.logs.get(TOPIC, 0)
        await engine.roll_scheduler.roll(log, RollReason.EXPLICIT)
        log.tail.evict()
        engine.roll_scheduler.enforce_memory_limit()
        assert borrowed[-1] == 0
        running.cancel()

    simulate(scenario)


def test_wal_size_is_bounded():
    async def scenario():
        store = memory_store()
        engine, running = await working(store, wal_bytes_max=2000)
        await append(engine, b"quiet", partition=1)
        for _ in range(30):
            await append(engine, b"x" * 200)
            await asyncio.sleep(0.5)
        assert engine.trimmer.size_bytes <= 4000
        assert len(await keys(store, ".kfw")) < 20
        assert engine.counters.segments_rolled["wal"] > 0
        assert engine.logs.get(TOPIC, 1).tail.rolled_offset == 1
        running.cancel()

    simulate(scenario)


def test_scheduling_twice_rolls_once():
    async def scenario():
        engine, running = await working(memory_store())
        await append(engine, b"x")
        log = engine.logs.get(TOPIC, 0)
        for _ in range(3):
            engine.roll_scheduler.schedule_roll(log, RollReason.EXPLICIT)
        await asyncio.sleep(0.1)
        assert engine.counters.segments_rolled == {"explicit": 1}
        running.cancel()

    simulate(scenario)


def test_appends_are_rejected_when_segments_cannot_be_rolled():
    """Memory is bounded even if the store accepts WAL objects but no segments."""

    async def scenario():
        store = FaultyObjectStore(
            memory_store(), [Rule(fault=Fault.REFUSED, keys="*.kfs")], random=Random(1)
        )
        engine, running = await working(store, tail_bytes_max=5000)

        async def produce():
            for _ in range(100):
                await append(engine, b"x" * 200)

        with pytest.raises(OverloadedError):
            await produce()
        assert engine.memory.used_bytes <= 5000 * 1.5 + 1000
        store.rules.clear()
        await asyncio.sleep(30)
        await append(engine, b"x" * 200)
        running.cancel()

    simulate(scenario)
