"""The WAL writer: durable before acknowledged, in order, never skipped, ended by a fence."""

import asyncio
from random import Random

import pytest

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from doubles.virtual_time import clock_ms
from kafscale.errors import FencedError, NotOwnerError, OverloadedError
from kafscale.observability import tracing
from kafscale.storage.formats import object_keys
from kafscale.storage.wal.buffer import SealPolicy
from kafscale.storage.wal.writer import RUNS_PER_TURN
from services.recorded_spans import record_spans
from unit.storage.engines import (
    BROKER_ID,
    NAMESPACE,
    TOPIC,
    append,
    keys,
    memory_store,
    open_engine,
    read_offsets,
    simulate,
    topic,
    values_batch,
)

PUT = frozenset({"put"})


def key_of(sequence: int) -> str:
    return object_keys.wal_key(NAMESPACE, BROKER_ID, 0, sequence)


def faulty(*rules: Rule) -> FaultyObjectStore:
    return FaultyObjectStore(memory_store(), rules, random=Random(0))


@pytest.mark.parametrize(
    "fault",
    [Fault.REFUSED, Fault.TIMED_OUT, Fault.RESPONSE_LOST, Fault.APPLIED_LATER, Fault.DENIED],
)
def test_failed_put_is_retried_and_acknowledged_once(fault):
    """N-08b: nothing is visible before the response, and there is one copy after it."""

    async def scenario():
        store = faulty()
        engine = await open_engine(store)
        store.rules = [
            Rule(fault=fault, operations=PUT, keys=key_of(1), times_max=3, seconds=(0.05, 0.05))
        ]
        log = engine.logs.get(TOPIC, 0)
        appending = asyncio.ensure_future(append(engine, b"a"))
        await asyncio.sleep(0.01)
        assert not appending.done()
        assert log.high_watermark == 0
        assert await appending == 0
        assert log.high_watermark == 1
        assert await read_offsets(engine) == [0]
        assert store.injected[fault] >= 2
        assert engine.counters.wal_puts == 1

    simulate(scenario)


def test_objects_are_acknowledged_in_order():
    async def scenario():
        store = faulty(Rule(fault=Fault.SLOW, keys=key_of(1), seconds=(10, 10)))
        engine = await open_engine(store)
        log = engine.logs.get(TOPIC, 0)
        first = asyncio.ensure_future(append(engine, b"a"))
        await asyncio.sleep(0.1)
        second = asyncio.ensure_future(append(engine, b"b"))
        await asyncio.sleep(5)
        assert key_of(2) in await keys(store)
        assert not second.done()
        assert log.high_watermark == 0
        assert await asyncio.gather(first, second) == [0, 1]

    simulate(scenario)


def test_large_objects_are_acknowledged_in_order_over_several_turns():
    """Partition by partition, the second object after the whole first one."""
    count = 2 * RUNS_PER_TURN + 1
    order = []

    async def scenario():
        partitions = topic(count, is_new=True, fully_rolled=True)
        engine = await open_engine(memory_store(), partitions=partitions)
        logs = list(engine.logs)
        began = asyncio.Event()
        for log in logs:
            log.watch(lambda log: order.append((log.high_watermark, log.partition)))
        logs[0].watch(lambda _: began.set())
        futures = []
        for value in (b"a", b"b"):
            appended = [log.append(values_batch([value]), clock_ms()) for log in logs]
            futures.append(appended[0].durable)
            engine.wal.flush_soon()
        futures[0].add_done_callback(lambda _: order.append("first"))
        futures[1].add_done_callback(lambda _: order.append("second"))
        await began.wait()
        assert len(order) == RUNS_PER_TURN
        assert not futures[0].done()
        unflushed = engine.wal.unflushed_bytes_by_log()
        assert sum(unflushed.values()) == engine.wal.unflushed_bytes > 0
        await engine.wal.flush()
        assert engine.wal.unflushed_bytes == 0
        assert engine.wal.unflushed_bytes_by_log() == {}

    simulate(scenario)
    order.remove("first")
    order.remove("second")
    assert order == [(end, partition) for end in (1, 2) for partition in range(count)]


def test_end_of_the_session_stops_an_acknowledgement():
    async def scenario():
        partitions = topic(RUNS_PER_TURN + 1, is_new=True, fully_rolled=True)
        engine = await open_engine(memory_store(), partitions=partitions)
        logs = list(engine.logs)
        began = asyncio.Event()
        logs[0].watch(lambda _: began.set())
        durable = [log.append(values_batch([b"a"]), clock_ms()).durable for log in logs]
        await began.wait()
        engine.wal.abort()
        await asyncio.sleep(1)
        assert [log.high_watermark for log in logs] == [1] * RUNS_PER_TURN + [0]
        with pytest.raises(NotOwnerError):
            await durable[0]

    simulate(scenario)


def test_buffer_is_bounded_and_applies_backpressure():
    async def scenario():
        store = faulty()
        engine = await open_engine(store, buffer_bytes_max=200)
        store.is_down = True
        log = engine.logs.get(TOPIC, 0)
        log.append(values_batch([b"x" * 100]), clock_ms())
        congestion = engine.wal.backpressure()
        assert congestion is not None
        assert engine.wal.unflushed_bytes_by_log() == {log: engine.wal.unflushed_bytes}
        await asyncio.sleep(0.01)  # Meanwhile it was sealed, and waits for the store.
        assert engine.wal.unflushed_bytes_by_log() == {log: engine.wal.unflushed_bytes}
        with pytest.raises(OverloadedError):
            log.append(values_batch([b"x" * 100]), clock_ms())
        assert log.end_offset == 1
        store.is_down = False
        await congestion
        assert engine.wal.unflushed_bytes == 0
        assert engine.wal.unflushed_bytes_by_log() == {}
        assert await append(engine, b"x" * 100) == 1

    simulate(scenario)


def test_single_batch_larger_than_the_buffer_is_accepted():
    async def scenario():
        engine = await open_engine(memory_store(), buffer_bytes_max=10)
        assert await append(engine, b"x" * 100) == 0

    simulate(scenario)


def test_fence_closes_the_writer():
    async def scenario():
        store = faulty()
        engine = await open_engine(store)
        store.is_down = True
        log = engine.logs.get(TOPIC, 0)
        uploading = log.append(values_batch([b"a"]), clock_ms()).durable
        await asyncio.sleep(0.01)
        waiting = log.append(values_batch([b"b"]), clock_ms()).durable
        await open_engine(store._inner)
        store.is_down = False
        await engine.wal.fenced
        for durable in (uploading, waiting):
            with pytest.raises(FencedError):
                await durable
        with pytest.raises(FencedError):
            log.append(values_batch([b"c"]), clock_ms())
        assert log.high_watermark == 0
        with pytest.raises(NotOwnerError):
            await append(engine, b"d")

    simulate(scenario)


def test_abort_fails_pending_appends():
    async def scenario():
        store = faulty()
        engine = await open_engine(store, buffer_bytes_max=100)
        store.is_down = True
        log = engine.logs.get(TOPIC, 0)
        durable = log.append(values_batch([b"a" * 80]), clock_ms()).durable
        congestion = engine.wal.backpressure()
        engine.close()
        with pytest.raises(NotOwnerError):
            await durable
        await congestion
        store.is_down = False
        await asyncio.sleep(100)
        assert await keys(store, ".kfw") == [key_of(0)]
        assert not engine.wal.fenced.done()

    simulate(scenario)


def test_flush_waits_for_everything_appended_before():
    async def scenario():
        store = faulty(Rule(fault=Fault.SLOW, operations=PUT, seconds=(1, 1)))
        engine = await open_engine(store, puts_per_second=0.001)
        log = engine.logs.get(TOPIC, 0)
        await engine.wal.flush()
        for value in (b"a", b"b"):
            log.append(values_batch([value]), clock_ms())
            await asyncio.sleep(0.01)
        await engine.wal.flush()
        assert log.high_watermark == 2
        assert engine.wal.unflushed_bytes == 0

    simulate(scenario)


def test_batches_that_arrive_together_share_an_object():
    async def scenario():
        store = memory_store()
        engine = await open_engine(store)
        await asyncio.gather(*(append(engine, b"a") for _ in range(100)))
        assert await keys(store, ".kfw") == [key_of(0), key_of(1)]

    simulate(scenario)


def test_full_object_does_not_wait_for_the_budget():
    async def scenario():
        seal_policy = SealPolicy(
            flush_bytes=1000,
            flush_messages=10_000,
            flush_interval_ms=60_000,
            uploads_max=8,
            idle_uploads_max=8,
        )
        engine = await open_engine(
            memory_store(), seal_policy=seal_policy, puts_per_second=0.01, puts_burst=1
        )
        await append(engine, b"takes the only token")
        log = engine.logs.get(TOPIC, 0)
        log.append(values_batch([b"waits"]), clock_ms())
        await asyncio.sleep(1)
        assert log.high_watermark == 1
        filling = log.append(values_batch([bytes(2000)]), clock_ms())
        async with asyncio.timeout(1):
            await filling.durable
        assert log.high_watermark == 3

    simulate(scenario)


def test_upload_span_is_a_child_of_one_request_and_linked_to_the_others():
    async def scenario():
        with record_spans() as recorder:
            engine = await open_engine(memory_store())

            async def ask(name):
                with tracing.span(name):
                    return await append(engine, b"a")

            await asyncio.gather(*(ask(f"request {number}") for number in range(3)))
            first, *others = (span for span in recorder.spans if span.name.startswith("request"))
            (wal_span,) = (span for span in recorder.spans if span.name == "WAL object")
            assert wal_span.parent is first
            assert list(wal_span.links) == others
            assert wal_span.attributes["kafscale.object.key"] == key_of(1)

    simulate(scenario)
