"""Retention: advances the log start offset and deletes the segments below it."""

import asyncio
from random import Random

import pytest
from structlog.testing import capture_logs

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from doubles.virtual_time import clock_ms
from kafscale.errors import OffsetOutOfRangeError, StoreUnavailableError
from kafscale.storage.formats import object_keys
from unit.storage.engines import (
    NAMESPACE,
    TOPIC,
    Epochs,
    append,
    keys,
    log_settings,
    memory_store,
    open_engine,
    read_offsets,
    roll,
    simulate,
    topic,
)
from unit.storage.sessions import FakeMetadataStore


async def three_segments(store, metadata, **settings):
    """An engine with a segment for each of three records, a second apart."""
    engine = await open_engine(
        store, save_state=metadata.save, partitions=topic(settings=log_settings(**settings))
    )
    for value in (b"a", b"b", b"c"):
        await append(engine, value * 100, timestamp_ms=clock_ms())
        await roll(engine)
        await asyncio.sleep(1)
    return engine, engine.logs.get(TOPIC, 0)


@pytest.mark.parametrize("settings", [{"retention_ms": 2500}, {"retention_bytes": 400}])
def test_old_segments_are_deleted_and_the_log_start_advances(settings):
    """N-18."""

    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        engine, log = await three_segments(store, metadata, **settings)
        await engine.retention.enforce(log)
        assert log.start_offset == 1
        assert metadata.starts == {0: 1}
        assert len(await keys(store, ".kfs")) == len(await keys(store, ".index")) == 2
        assert await read_offsets(engine) == [1, 2]
        with pytest.raises(OffsetOutOfRangeError):
            await read_offsets(engine, 0)

    simulate(scenario)


def test_times_of_segments_are_read_once():
    async def scenario():
        inner, metadata = memory_store(), FakeMetadataStore()
        before, _ = await three_segments(inner, metadata)
        before.close()
        store = FaultyObjectStore(inner, random=Random(0))
        reads = []
        settings = log_settings(retention_ms=60_000)
        engine = await open_engine(
            store,
            partitions=topic(settings=settings),
            indexes_bytes_max=1,
            save_state=metadata.save,
        )
        store.get = lambda key: reads.append(key) or inner.get(key)
        log = engine.logs.get(TOPIC, 0)
        for _ in range(10):
            await engine.retention.enforce(log)
        assert len(reads) == 1, "the first segment has not expired"
        await asyncio.sleep(61)
        await engine.retention.enforce(log)
        assert len(reads) == 3
        assert log.start_offset == 3

    simulate(scenario)


def test_log_start_object_never_moves_back():
    async def scenario():
        inner, metadata = memory_store(), FakeMetadataStore()
        store = FaultyObjectStore(inner, random=Random(0))
        engine, log = await three_segments(store, metadata)
        key = object_keys.log_start_key(NAMESPACE, TOPIC, 0)
        await engine.retention.delete_records(log, 1)
        late = Rule(fault=Fault.APPLIED_LATER, keys=key, operations=frozenset({"put"}), times_max=1)
        store.rules = [late]
        with pytest.raises(StoreUnavailableError):
            await engine.retention.delete_records(log, 2)
        await engine.retention.delete_records(log, 3)
        await store.wait_for_late_writes()
        assert bytes(await inner.get(key)) == b"3"

    simulate(scenario)


def test_expired_tail_is_rolled_and_deleted():
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        engine, log = await three_segments(store, metadata, retention_ms=60_000)
        await append(engine, b"d", timestamp_ms=clock_ms())
        await asyncio.sleep(61)
        running = asyncio.create_task(engine.roll_scheduler.run())
        await engine.retention.enforce(log)
        assert log.start_offset == 3, "segments are deleted before the tail is rolled"
        await asyncio.sleep(1)
        await engine.retention.enforce(log)
        running.cancel()
        assert (log.start_offset, log.high_watermark) == (4, 4)
        assert await keys(store, ".kfs") == []
        assert engine.memory.used_bytes == 0
        assert await append(engine, b"e") == 4

    simulate(scenario)


def test_records_without_timestamps_expire_by_when_they_were_written():
    """Producers of the time of Kafka 0.9 send none; Kafka takes the time of the file."""

    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        partitions = topic(settings=log_settings(retention_ms=60_000))
        engine = await open_engine(store, save_state=metadata.save, partitions=partitions)
        log = engine.logs.get(TOPIC, 0)
        await append(engine, b"a", timestamp_ms=-1)
        await roll(engine)
        await append(engine, b"b", timestamp_ms=-1)
        running = asyncio.create_task(engine.roll_scheduler.run())
        for _ in range(2):
            await engine.retention.enforce(log)
            await asyncio.sleep(1)
        running.cancel()
        assert await read_offsets(engine) == [0, 1]
        assert len(log.segments) == 1, "the tail has not expired"
        await asyncio.sleep(61)
        await engine.retention.enforce(log)
        assert await read_offsets(engine, 1) == [1]
        assert log.start_offset == 1

    simulate(scenario)


def test_offsets_are_not_reused_after_everything_was_deleted():
    async def scenario():
        store, metadata, epochs = memory_store(), FakeMetadataStore(), Epochs()
        engine, log = await three_segments(store, metadata, retention_ms=0)
        await engine.retention.enforce(log)
        await engine.stop(flush_seconds=1, roll_seconds=1)
        engine = await open_engine(store, epochs, partitions=[metadata.to_open()])
        assert await append(engine, b"d") == 3

    simulate(scenario)


def test_log_start_is_saved_before_segments_are_deleted():
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        engine, log = await three_segments(store, metadata, retention_ms=0)
        metadata.is_down = True
        for _ in range(3):
            with pytest.raises(StoreUnavailableError):
                await engine.retention.enforce(log)
        assert len(await keys(store, ".kfs")) == 3
        metadata.is_down = False
        await engine.retention.enforce(log)
        assert await keys(store, ".kfs") == []
        assert metadata.starts == {0: 3}

    simulate(scenario)


def test_failed_deletion_is_repeated():
    async def scenario():
        inner, metadata = memory_store(), FakeMetadataStore()
        store = FaultyObjectStore(inner, random=Random(0))
        engine, log = await three_segments(store, metadata, retention_ms=0)
        store.rules = [Rule(fault=Fault.REFUSED, operations=frozenset({"delete"}), times_max=1)]
        with pytest.raises(StoreUnavailableError):
            await engine.retention.enforce(log)
        await engine.retention.enforce(log)
        assert await keys(inner, ".kfs") == []

    simulate(scenario)


def test_concurrent_enforcement_deletes_nothing_twice():
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        engine, log = await three_segments(store, metadata, retention_bytes=400)
        await asyncio.gather(*(engine.retention.enforce(log) for _ in range(3)))
        assert await read_offsets(engine) == [1, 2]
        assert len(log.segments) == 2

    simulate(scenario)


def test_delete_records_within_a_segment():
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        engine, log = await three_segments(store, metadata)
        await append(engine, b"d", b"e", b"f")
        await engine.retention.delete_records(log, 4)
        assert await read_offsets(engine) == [3]
        await engine.retention.enforce(log)
        assert await keys(store, ".kfs") == []
        engine.close()
        engine = await open_engine(store, partitions=[metadata.to_open()])
        assert engine.logs.get(TOPIC, 0).start_offset == 4
        assert await read_offsets(engine) == [3]
        assert await append(engine, b"g") == 6

    simulate(scenario)


def test_log_start_object_is_written_for_readers_without_metadata():
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        engine, log = await three_segments(store, metadata, retention_bytes=400)
        await engine.retention.enforce(log)
        mark = object_keys.log_start_key(NAMESPACE, TOPIC, 0)
        assert mark not in await keys(store), "the first segment shows the start"
        await append(engine, b"d", b"e", b"f")
        await engine.retention.delete_records(log, 4)
        assert bytes(await store.get(mark)) == b"4"
        await roll(engine)
        await engine.retention.delete_records(log, 6)
        await engine.retention.enforce(log)
        assert await keys(store, ".kfs") == []
        assert bytes(await store.get(mark)) == b"6"
        engine.close()
        with capture_logs() as logs:
            await open_engine(store, partitions=[metadata.to_open()])
        assert "unknown objects in topic prefix ignored" not in [line["event"] for line in logs]

    simulate(scenario)
