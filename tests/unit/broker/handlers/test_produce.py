"""Produce: which timestamps are accepted, and how a retry is answered."""

import asyncio

import pytest

from doubles import virtual_time
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProduceRequest,
    TopicToProduce,
)
from kafscale.records import Record, build
from unit.broker.in_memory_broker import Stores, run_with_broker, running_broker

HOUR_MS = 3_600_000
LIMITED = {"message_timestamp_after_max_ms": "1000", "message_timestamp_before_max_ms": "5000"}


async def produce(broker, topic, *ages_ms, **producer):
    """Produce one batch, with a record of each age."""
    now_ms = virtual_time.clock_ms()
    records = [Record(n, now_ms - age_ms, None, b"value") for n, age_ms in enumerate(ages_ms)]
    batch = PartitionToProduce(index=0, records=memoryview(build(records, **producer)))
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topics=[TopicToProduce(topic, partitions=[batch])]
    )
    response = await broker.ask(PRODUCE, request, 12)
    return response.topics[0].partitions[0]


@pytest.mark.parametrize(
    ("configs", "ages_ms", "is_accepted"),
    [
        ({}, [-HOUR_MS], True),
        ({}, [0, -HOUR_MS - 1, 0], False),
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
            assert "message.timestamp.after.max.ms" in produced.error_message
            assert broker.log("orders").end_offset == 0

    run_with_broker(body)


def test_records_without_timestamps_are_accepted():
    async def body(broker):
        await broker.topic("orders", message_timestamp_before_max_ms="1")
        produced = await produce(broker, "orders", virtual_time.clock_ms() + 1)  # -1: no timestamp.
        assert produced.error_code == ErrorCode.NONE

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
