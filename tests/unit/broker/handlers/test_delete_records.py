"""DeleteRecords: the log's start moves, and stays where it is after a restart."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsRequest,
    PartitionToTrim,
    TopicToTrim,
)
from kafscale.testing import virtual_time
from unit.broker.handlers.serving import WITHOUT_ADMINISTRATION, Stores, life, serve


async def trim(broker, offset, *, topic="orders", index=0, version=DELETE_RECORDS.version_max):
    request = DeleteRecordsRequest([TopicToTrim(topic, [PartitionToTrim(index, offset)])])
    response = await broker.ask(DELETE_RECORDS, request, version)
    assert [found.name for found in response.topics] == [topic]
    [found] = response.topics[0].partitions
    assert found.index == index
    return found.error_code, found.low_watermark


@pytest.mark.parametrize("version", DELETE_RECORDS.versions)
def test_an_offset_becomes_the_first(version):
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1000, 2000, 3000)

        assert await trim(broker, 2, version=version) == (ErrorCode.NONE, 2)
        assert await trim(broker, 1, version=version) == (ErrorCode.NONE, 2)
        assert broker.log("orders").start_offset == 2
        assert await trim(broker, -1, version=version) == (ErrorCode.NONE, 3)

    serve(body)


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ({"offset": 2}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"offset": -2}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"offset": 0, "index": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"offset": 0, "topic": "missing"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_what_is_not_there_cannot_be_deleted(place, code):
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1000)

        assert await trim(broker, **place) == (code, -1)
        assert broker.log("orders").start_offset == 0

    serve(body)


def test_a_topic_that_is_compacted_only_keeps_its_records():
    async def body(broker):
        await broker.topic("orders", cleanup_policy="compact")
        await broker.topic("both", cleanup_policy="compact,delete")
        await broker.write("orders", 1000)
        await broker.write("both", 1000)

        assert await trim(broker, 1) == (ErrorCode.POLICY_VIOLATION, -1)
        assert broker.log("orders").start_offset == 0
        assert await trim(broker, 1, topic="both") == (ErrorCode.NONE, 1)

    serve(body)


def test_what_was_deleted_stays_deleted():
    async def scenario(_random):
        stores = Stores()
        async with life(stores) as broker:
            await broker.topic("orders")
            await broker.write("orders", 1000, 2000, 3000)
            await trim(broker, 2)
        async with life(stores) as broker:
            assert broker.log("orders").start_offset == 2

    virtual_time.run(scenario, seed=0)


@pytest.mark.parametrize("version", DELETE_RECORDS.versions)
def test_a_broker_without_administration_refuses(version):
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1000)

        assert await trim(broker, 1, version=version) == (ErrorCode.POLICY_VIOLATION, -1)
        assert broker.log("orders").start_offset == 0

    serve(body, config=WITHOUT_ADMINISTRATION)
