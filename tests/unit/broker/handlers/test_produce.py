"""Produce: which records are accepted, and how a retry is answered."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from struct import Struct

import pytest

from doubles import virtual_time
from doubles.faulty_object_store import Fault, Rule
from kafscale.broker.health import TICK_SECONDS
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProduceRequest,
    TopicToProduce,
)
from kafscale.records import BatchView, Codec, Record, build
from kafscale.records.batch import HEADER_BYTES, LENGTH_POSITION, MAX_TIMESTAMP_POSITION
from kafscale.records.compression import compress
from unit.broker.in_memory_broker import CONFIG, Stores, run_with_broker, running_broker

HOUR_MS = 3_600_000
PUT_SECONDS = 0.5
SLOW_PUTS = Rule(
    fault=Fault.SLOW, operations=frozenset({"put"}), seconds=(PUT_SECONDS, PUT_SECONDS)
)
PRODUCER = {"producer_id": 5, "producer_epoch": 0}
LIMITED = {"message_timestamp_after_max_ms": "1000", "message_timestamp_before_max_ms": "5000"}


async def produce(broker, topic, *ages_ms, **producer):
    """Produce one batch, with a record of each age."""
    now_ms = virtual_time.clock_ms()
    records = [Record(n, now_ms - age_ms, None, b"value") for n, age_ms in enumerate(ages_ms)]
    return await produce_batch(broker, topic, build(records, **producer))


def request_of(topic, batch, acks=-1):
    partition = PartitionToProduce(index=0, records=memoryview(batch))
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topics=[TopicToProduce(topic, partitions=[partition])]
    )


async def produce_batch(broker, topic, batch, version=12):
    response = await broker.ask(PRODUCE, request_of(topic, batch), version)
    return response.topics[0].partitions[0]


def with_payload(batch, payload):
    """The batch with other bytes in place of its records, and the right length and checksum."""
    data = bytearray(batch[:HEADER_BYTES]) + payload
    data[LENGTH_POSITION : LENGTH_POSITION + 4] = (len(data) - 12).to_bytes(4, "big")
    view = BatchView(data)
    view.write_checksum()
    return view.buffer


def records_of(*keys, **fields):
    now_ms = virtual_time.clock_ms()
    return build([Record(n, now_ms, key, b"value") for n, key in enumerate(keys)], **fields)


@pytest.mark.parametrize(
    ("configs", "ages_ms", "is_accepted"),
    [
        ({}, [-HOUR_MS], True),
        ({}, [0, -HOUR_MS - 1, 0], False),
        (LIMITED, [0, 5001, 0], False),
        ({}, [-(2**62)], False),
        ({}, [virtual_time.START_MS], True),  # Since 1970: no limit by default.
        (LIMITED, [5000, -1000], True),
        (LIMITED, [5001, 0], False),
        (LIMITED, [0, -1001], False),
        (LIMITED | {"message_timestamp_type": "LogAppendTime"}, [HOUR_MS, -HOUR_MS], True),
    ],
)
def test_timestamps_are_limited_by_the_topic(configs, ages_ms, is_accepted):
    async def body(broker):
        await broker.topic("orders", **configs)
        produced = await produce(broker, "orders", *ages_ms)
        if is_accepted:
            assert (produced.error_code, produced.base_offset) == (ErrorCode.NONE, 0)
        else:
            assert produced.error_code == ErrorCode.INVALID_TIMESTAMP
            assert produced.error_message.endswith("rejected due to invalid timestamp")
            [refused] = produced.record_errors
            assert "is out of range" in refused.message
            assert broker.log("orders").end_offset == 0

    run_with_broker(body)


def test_records_without_timestamps_are_accepted():
    async def body(broker):
        await broker.topic("orders", message_timestamp_before_max_ms="1")
        produced = await produce(broker, "orders", virtual_time.clock_ms() + 1)  # -1: no timestamp.
        assert produced.error_code == ErrorCode.NONE

    run_with_broker(body)


GARBAGE = b"\xff" * 40


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)
@pytest.mark.parametrize("is_large", [False, True], ids=["small", "large"])
def test_garbage_is_refused(codec, is_large):
    """It would stop every consumer of the partition."""

    async def body(broker):
        await broker.topic("orders", max_message_bytes=str(1 << 24))
        garbage = GARBAGE * (50_000 if is_large else 1)
        sent = with_payload(records_of(b"k", codec=codec), compress(codec, garbage))
        produced = await produce_batch(broker, "orders", sent)
        assert produced.error_code == ErrorCode.INVALID_RECORD
        if codec is not Codec.NONE:
            sent = with_payload(records_of(b"k", codec=codec), garbage)
            produced = await produce_batch(broker, "orders", sent)
            assert produced.error_code == ErrorCode.CORRUPT_MESSAGE
        assert broker.log("orders").end_offset == 0

    run_with_broker(body)


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
@pytest.mark.parametrize("version", [7, 8, 12])
def test_compacted_topics_refuse_records_without_a_key(policy, version):
    async def body(broker):
        await broker.topic("state", cleanup_policy=policy)
        refused = await produce_batch(broker, "state", records_of(b"a", None, b"", None), version)
        assert refused.error_code == ErrorCode.INVALID_RECORD
        if version >= 8:
            assert "2 record errors in total" in refused.error_message
            reason = "Compacted topic cannot accept message without key in topic partition state-0"
            named = [(each.batch_index, each.message) for each in refused.record_errors]
            assert named == [(1, reason), (3, reason)]
        assert broker.log("state").end_offset == 0
        accepted = await produce_batch(broker, "state", records_of(b"a", b""), version)
        assert accepted.error_code == ErrorCode.NONE

    run_with_broker(body)


@pytest.mark.parametrize("claimed_ms", [0, 2**62])
def test_largest_timestamp_in_the_header_is_corrected(claimed_ms):
    """Retention relies on it, so that a wrong one would delete records, or keep them forever."""

    async def body(broker):
        await broker.topic("orders")
        batch = BatchView(records_of(b"k"))
        Struct(">q").pack_into(batch.buffer, MAX_TIMESTAMP_POSITION, claimed_ms)
        batch.write_checksum()
        assert (await produce_batch(broker, "orders", batch.buffer)).error_code == ErrorCode.NONE
        [stored] = broker.log("orders").tail.unrolled().batches(1)
        assert stored.max_timestamp_ms == virtual_time.clock_ms()
        stored.verify_checksum()

    run_with_broker(body)


def test_retry_is_answered_with_the_first_append_time():
    """Also by the next broker, which knows the batch from the WAL."""

    async def scenario(_random):
        stores = Stores()
        producer = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
        async with running_broker(stores) as broker:
            await broker.topic("orders", message_timestamp_type="LogAppendTime")
            await broker.topic("created")
            first = await produce(broker, "orders", 0, **producer)
            assert first.log_append_time_ms == virtual_time.clock_ms()
            await asyncio.sleep(10)
            assert await produce(broker, "orders", 0, **producer) == first
            for _ in range(2):
                created = await produce(broker, "created", 0, **producer)
                assert (created.base_offset, created.log_append_time_ms) == (0, -1)
        async with running_broker(stores) as broker:
            assert await produce(broker, "orders", 0, **producer) == first

    virtual_time.run(scenario, seed=0)


@pytest.mark.parametrize(
    ("acks", "sync_flush", "waits"),
    [(1, False, False), (1, True, True), (-1, False, True), (-1, True, True)],
)
def test_acks_1_waits_for_the_object_store_if_produce_sync_flush_is_set(acks, sync_flush, waits):
    """W-11."""

    async def scenario(_random):
        stores = Stores()
        config = replace(CONFIG, storage=replace(CONFIG.storage, produce_sync_flush=sync_flush))
        async with running_broker(stores, config) as broker:
            await broker.topic("orders")
            stores.objects.rules.append(SLOW_PUTS)
            request = request_of("orders", records_of(b"k"), acks)
            began = asyncio.get_running_loop().time()
            response = await broker.ask(PRODUCE, request, 12)
            seconds = asyncio.get_running_loop().time() - began
            assert response.topics[0].partitions[0].error_code == ErrorCode.NONE
            assert (seconds >= PUT_SECONDS) == waits
            durable = broker.log("orders").high_watermark
            assert durable == int(waits), "what is durable when the response comes"

    virtual_time.run(scenario, seed=0)


@asynccontextmanager
async def taking_over(broker, log):
    """The broker does not lead the partition yet."""
    broker.services.storage.logs.discard(log)
    yield
    broker.services.storage.logs.add(log)


@asynccontextmanager
async def transferring(_broker, log):
    """The broker moves the partition to another one, which fails."""
    log.pause_appends()
    yield
    log.resume_appends()


@asynccontextmanager
async def losing_the_store(broker, _log):
    """The object store fails, and comes back."""
    health = broker.services.health
    checks = asyncio.ensure_future(health.run(broker.stores.objects))
    for _ in range(100):
        health.on_operation("put", "error", 0.1, 0)
    await asyncio.sleep(TICK_SECONDS * 2)
    yield
    await asyncio.sleep(broker.services.config.s3.health_window_sec + TICK_SECONDS * 2)
    checks.cancel()


@pytest.mark.parametrize("refusing", [taking_over, transferring, losing_the_store])
def test_pipelined_batches_stay_in_order(refusing):
    """The batches that were sent before the producer knows that the first was refused wait."""

    async def body(broker):
        await broker.topic("orders")
        log = broker.log("orders")

        async def errors_of(*sequences):
            batches = [records_of(b"k", **PRODUCER, base_sequence=each) for each in sequences]
            return [(await produce_batch(broker, "orders", each)).error_code for each in batches]

        assert await errors_of(0) == [ErrorCode.NONE]
        async with refusing(broker, log):
            [refused] = await errors_of(1)
        assert ErrorCode.of(refused).retriable
        assert await errors_of(2, 3) == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
        assert await errors_of(1, 2, 3) == [ErrorCode.NONE] * 3
        assert log.end_offset == 4

    run_with_broker(body)
