"""Timestamp lookup, for ListOffsets."""

import asyncio

import pytest

from doubles.turn_timer import measured_turns
from doubles.virtual_time import clock_ms
from kafscale.records import BatchView, Codec, Record, TimestampType, build
from kafscale.storage.log import timestamp_lookup
from unit.storage.engines import (
    TOPIC,
    append,
    log_settings,
    memory_store,
    open_engine,
    roll,
    simulate,
    topic,
)


async def timed(*times_ms: int, rolled: int = 4, **settings):
    """A log with a record for each time, of which some are in segments of two."""
    engine = await open_engine(memory_store(), partitions=topic(settings=log_settings(**settings)))
    for number, timestamp_ms in enumerate(times_ms):
        await append(engine, b"x", timestamp_ms=timestamp_ms)
        if number % 2 and number < rolled:
            await roll(engine)
    return engine.reader, engine.logs.get(TOPIC, 0)


@pytest.mark.parametrize(
    ("asked_ms", "offset"),
    [(0, 0), (10, 0), (11, 1), (30, 1), (31, 4), (50, 4), (60, 5), (61, None)],
)
def test_offset_for_timestamp_finds_the_first_record(asked_ms, offset):
    async def scenario():
        result = await timestamp_lookup.offset_for_timestamp(
            *await timed(10, 30, 20, 25, 50, 60), asked_ms
        )
        assert (result and result.offset) == offset

    simulate(scenario)


def test_records_below_the_log_start_are_ignored():
    async def scenario():
        reader, log = await timed(10, 30, 20, 25, 50, 60)
        log.advance_start(2)
        result = await timestamp_lookup.offset_for_timestamp(reader, log, 15)
        assert (result.offset, result.timestamp_ms) == (2, 20)

    simulate(scenario)


@pytest.mark.parametrize("timestamp_type", list(TimestampType))
def test_batch_of_many_records_does_not_hold_the_event_loop(timestamp_type):
    count = 100_000
    values = [Record(number, number, None, b"") for number in range(count)]
    batch = BatchView(build(values, codec=Codec.ZSTD))

    async def scenario():
        settings = log_settings(timestamp_type=timestamp_type)
        engine = await open_engine(memory_store(), partitions=topic(settings=settings))
        log = engine.logs.get(TOPIC, 0)
        await log.append(batch, clock_ms()).durable
        newest = await timestamp_lookup.offset_of_max_timestamp(engine.reader, log)
        return newest.offset

    with measured_turns() as timer:
        offset = asyncio.run(scenario())
    assert offset == (count - 1 if timestamp_type is TimestampType.CREATE_TIME else 0)
    assert timer.longest_seconds < 0.05, timer.longest


def test_log_start_may_be_within_a_log_append_time_batch():
    async def scenario():
        engine = await open_engine(
            memory_store(),
            partitions=topic(settings=log_settings(timestamp_type=TimestampType.LOG_APPEND_TIME)),
        )
        await append(engine, b"a", b"b", b"c")
        log = engine.logs.get(TOPIC, 0)
        log.advance_start(1)
        result = await timestamp_lookup.offset_for_timestamp(engine.reader, log, clock_ms())
        assert result.offset == 1

    simulate(scenario)


@pytest.mark.parametrize("rolled", [0, 4, 6])
@pytest.mark.parametrize(("times_ms", "offset"), [((10, 60, 20, 60), 1), ((1, 2, 3, 4, 9, 8), 4)])
def test_offset_of_max_timestamp_is_the_first_with_that_timestamp(times_ms, offset, rolled):
    async def scenario():
        result = await timestamp_lookup.offset_of_max_timestamp(
            *await timed(*times_ms, rolled=rolled)
        )
        assert (result.offset, result.timestamp_ms) == (offset, max(times_ms))

    simulate(scenario)


def test_empty_log_has_no_max_timestamp():
    async def scenario():
        assert await timestamp_lookup.offset_of_max_timestamp(*await timed()) is None

    simulate(scenario)


def test_record_with_the_max_timestamp_may_be_deleted():
    async def scenario():
        reader, log = await timed(90, 10, 20, 30)
        log.advance_start(2)
        result = await timestamp_lookup.offset_of_max_timestamp(reader, log)
        assert result.offset == 3

    simulate(scenario)
