"""`LogReader`: reads from the tail, from segments, and from both."""

import asyncio
from contextlib import suppress
from random import Random

import pytest
from structlog.testing import capture_logs

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from kafscale.errors import DamagedRecordsError, NotOwnerError, OffsetOutOfRangeError
from kafscale.records import Codec, batch, split
from kafscale.storage.formats import object_keys, segment
from kafscale.storage.read.damaged_segments import PAUSE_SECONDS
from kafscale.storage.read.read_ahead import ReadAheadLimits
from unit.storage.engines import (
    NAMESPACE,
    TOPIC,
    TOPIC_ID,
    CountingStore,
    append,
    keys,
    memory_store,
    open_engine,
    read_offsets,
    roll,
    simulate,
)
from unit.storage.staged_segments import replace_all


async def cold(store, records: int = 6, **changes):
    """An engine with a log of two-record segments, and an empty tail."""
    engine = await open_engine(store, index_interval_bytes=1, **changes)
    for number in range(records):
        await append(engine, b"%d" % number)
        if number % 2:
            await roll(engine)
    log = engine.logs.get(TOPIC, 0)
    while log.tail.evict():
        pass
    engine.reader.forget(f"{NAMESPACE}/")
    return engine, log


@pytest.mark.parametrize("offset", range(8))
@pytest.mark.parametrize("batches_max", [1, 2, 3, 100])
def test_read_returns_whole_batches_from_its_offset(offset, batches_max):
    async def scenario():
        engine, log = await cold(memory_store(), 8)
        await append(engine, b"tail")
        size_bytes = 69
        result, following = await engine.reader.read(
            log, offset, batches_max * size_bytes, first=True
        )
        bases = [batch.base_offset for batch in split(b"".join(result))]
        assert bases == list(range(offset, min(offset + batches_max, bases[-1] + 1)))
        assert following == bases[-1] + 1
        if batches_max == 100:
            assert following == 9

    simulate(scenario)


def test_oversized_first_batch_is_read_only_if_required():
    async def scenario():
        engine, log = await cold(memory_store())
        assert await engine.reader.read(log, 0, 10, first=False) == ([], 0)
        result, following = await engine.reader.read(log, 0, 10, first=True)
        assert (len(result), following) == (1, 1)

    simulate(scenario)


def test_fifty_readers_fetch_a_cold_segment_once():
    """N-10d."""

    async def scenario():
        store = CountingStore()
        engine, _ = await cold(store)
        store.requests.clear()
        result = await asyncio.gather(*(read_offsets(engine) for _ in range(50)))
        assert result == [list(range(6))] * 50
        assert store.requests["get_range"] == 3
        assert store.requests["get"] == 3

    simulate(scenario)


def test_sequential_reader_finds_the_next_segments_prefetched():
    async def scenario():
        store = CountingStore()
        engine, log = await cold(store, read_ahead=ReadAheadLimits(2, 1 << 20))
        store.requests.clear()
        await engine.reader.read(log, 0, 10, first=True)
        await asyncio.sleep(1)
        assert store.requests == {"get": 3, "get_range": 3}
        assert await read_offsets(engine) == list(range(6))
        assert store.requests == {"get": 3, "get_range": 3}

    simulate(scenario)


def test_reader_below_the_log_start_gets_an_error():
    async def scenario():
        store = memory_store()
        engine, log = await cold(store)
        reading = asyncio.ensure_future(read_offsets(engine, 0))
        await asyncio.sleep(0)
        log.advance_start(6)
        await engine.retention.enforce(log)
        engine.reader.forget("test/")
        with suppress(OffsetOutOfRangeError):
            assert (await reading)[0] == 0
        assert await engine.reader.read(log, 6, 100, first=True) == ([], 6)
        with pytest.raises(OffsetOutOfRangeError):
            await read_offsets(engine, 0)

    simulate(scenario)


def test_topic_deleted_during_a_read_does_not_crash():
    async def scenario():
        store = memory_store()
        engine, _ = await cold(store)
        reading = asyncio.ensure_future(read_offsets(engine, 0))
        await asyncio.sleep(0)
        engine.close_topic(TOPIC_ID, TOPIC, TOPIC)
        await engine.delete_objects(TOPIC)
        (outcome,) = await asyncio.gather(reading, return_exceptions=True)
        assert isinstance(outcome, NotOwnerError | list)
        assert engine.reader.cached_bytes == 0

    simulate(scenario)


def test_index_that_cannot_be_written_back_is_used():
    async def scenario():
        inner = memory_store()
        store = FaultyObjectStore(inner, random=Random(0))
        engine, _ = await cold(store)
        await inner.delete(await keys(inner, ".index"))
        engine.reader.forget("test/")
        store.rules = [Rule(fault=Fault.REFUSED, operations=frozenset({"put"}))]
        assert await read_offsets(engine) == list(range(6))
        assert await keys(inner, ".index") == []

    simulate(scenario)


def test_is_cached_predicts_whether_the_store_is_needed():
    async def scenario():
        engine, log = await cold(memory_store())
        await append(engine, b"tail")
        assert engine.reader.is_cached(log, 6), "the tail is memory"
        assert not engine.reader.is_cached(log, 0)
        await engine.reader.read(log, 0, 10, first=True)
        assert engine.reader.is_cached(log, 0)
        assert not engine.reader.is_cached(log, 4), "another segment"

    simulate(scenario)


def test_index_that_was_just_written_is_not_fetched():
    """R-12."""

    async def scenario():
        store = CountingStore()
        engine, log = await cold(store)
        for value in (b"6", b"7"):
            await append(engine, value)
        await roll(engine)
        while log.tail.evict():
            pass
        store.requests.clear()
        assert await read_offsets(engine, 6) == [6, 7]
        assert store.requests == {"get_range": 1}

    simulate(scenario)


# --- damage ---------------------------------------------------------------------------------------

BATCH_BYTES = 69


async def flip(store, key: str, position: int) -> None:
    data = bytearray(await store.get(key))
    data[position] ^= 1
    await store.put(key, [data], create=False)


def segment_key(base_offset: int) -> str:
    return object_keys.segment_key(NAMESPACE, TOPIC, 0, base_offset)


@pytest.mark.parametrize("position", [0, 7, batch.LENGTH_POSITION + 3, 16, 17, 22, 26, 65])
def test_damaged_batch_is_not_served(position):
    """Whatever field of it is damaged; records before and after it are read."""

    async def scenario():
        store = CountingStore()
        engine, log = await cold(store)
        await flip(store, segment_key(2), segment.HEADER_BYTES + BATCH_BYTES + position)
        result, following = await engine.reader.read(log, 0, 1 << 20, first=True)
        assert [one.base_offset for one in split(b"".join(result))] == [0, 1, 2]
        assert following == 3
        with pytest.raises(DamagedRecordsError):
            await read_offsets(engine, 3)
        assert await read_offsets(engine, 4) == [4, 5]
        assert await read_offsets(engine, 2) == [2]

    simulate(scenario)


@pytest.mark.parametrize("position", [0, 5, 15, -1])
def test_damaged_header_or_footer_is_found(position):
    async def scenario():
        store = memory_store()
        engine, _ = await cold(store)
        await flip(store, segment_key(2), position)
        with pytest.raises(DamagedRecordsError):
            await read_offsets(engine, 2)
        assert await read_offsets(engine, 4) == [4, 5]

    simulate(scenario)


def test_damage_is_read_again_once_and_then_reported_from_the_cache():
    async def scenario():
        store = CountingStore()
        engine, _ = await cold(store)
        await flip(store, segment_key(2), segment.HEADER_BYTES + 65)
        store.requests.clear()
        for _ in range(10):
            with pytest.raises(DamagedRecordsError):
                await read_offsets(engine, 2)
        assert store.requests["get_range"] == 2
        assert engine.counters.damaged_reads == 10
        await asyncio.sleep(PAUSE_SECONDS)
        await flip(store, segment_key(2), segment.HEADER_BYTES + 65)
        assert await read_offsets(engine, 2) == [2, 3, 4, 5]

    with capture_logs() as logs:
        simulate(scenario)
    assert [line["log_level"] for line in logs if line["event"] == "damaged segment"] == ["error"]


def test_segment_replaced_by_a_former_owner_is_read_again():
    """Its late swap merges two segments; caches and sizes are those of before."""

    async def scenario():
        store = memory_store()
        engine, log = await cold(store)
        assert await read_offsets(engine) == list(range(6))
        batches = [
            one
            for base_offset in (0, 2)
            for one in segment.read("", await store.get(segment_key(base_offset))).batches
        ]
        builder = segment.Builder(0, 1, compression=Codec.ZSTD, prior_max_timestamp_ms=-1)
        for one in batches:
            builder.append(one)
        built = builder.finish()
        await store.put(segment_key(0), built.parts, create=False)
        await store.put(object_keys.index_key(NAMESPACE, TOPIC, 0, 0), [built.index], create=False)
        engine.reader._blocks.forget(segment_key(0))
        assert await read_offsets(engine) == list(range(6))
        assert log.segments[0].size_bytes == built.size_bytes

    simulate(scenario)


def test_no_record_is_returned_twice_if_segments_are_replaced_during_a_read():
    """In the new segment, the batch at the next offset is the last one that was read.

    It has taken over the offset of a dropped one; and some clients (librdkafka) drop repeated
    records only at the beginning of a response.
    """

    async def scenario():
        engine, log = await cold(memory_store())
        read_segments = engine.reader.read_segments

        async def read_then_replace(*arguments):
            engine.reader.read_segments = read_segments
            result = await read_segments(*arguments)
            await replace_all(engine, log, dropped={2})
            return result

        engine.reader.read_segments = read_then_replace
        slices, next_offset = await engine.reader.read(log, 0, 1 << 20, first=True)
        assert [each.base_offset for each in split(b"".join(slices))] == [0, 1]
        assert next_offset == 2
        slices, next_offset = await engine.reader.read(log, next_offset, 1 << 20, first=True)
        assert [each.base_offset for each in split(b"".join(slices))] == [1, 3, 4, 5]
        assert next_offset == 6

    simulate(scenario)
