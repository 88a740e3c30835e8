"""DeleteRecords: the log start offset moves, and survives a restart."""

import pytest

from doubles import virtual_time
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsRequest,
    PartitionToTrim,
    TopicToTrim,
)
from unit.broker.in_memory_broker import ADMIN_DISABLED, Stores, run_with_broker, running_broker


async def trim(broker, offset, *, topic="orders", index=0, version=DELETE_RECORDS.version_max):
    request = DeleteRecordsRequest([TopicToTrim(topic, [PartitionToTrim(index, offset)])])
    response = await broker.ask(DELETE_RECORDS, request, version)
    assert [result.name for result in response.topics] == [topic]
    [result] = response.topics[0].partitions
    assert result.index == index
    return result.error_code, result.low_watermark


@pytest.mark.parametrize("version", DELETE_RECORDS.versions)
def test_offset_becomes_the_log_start_offset(version):
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1000, 2000, 3000)

        assert await trim(broker, 2, version=version) == (ErrorCode.NONE, 2)
        assert await trim(broker, 1, version=version) == (ErrorCode.NONE, 2)
        assert broker.log("orders").start_offset == 2
        assert await trim(broker, -1, version=version) == (ErrorCode.NONE, 3)

    run_with_broker(body)


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ({"offset": 2}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"offset": -2}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"offset": 0, "index": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"offset": 0, "topic": "missing"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_offset_out_of_range_is_refused(place, code):
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1000)

        assert await trim(broker, **place) == (code, -1)
        assert broker.log("orders").start_offset == 0

    run_with_broker(body)


def test_compacted_topic_refuses_delete_records():
    async def body(broker):
        await broker.topic("orders", cleanup_policy="compact")
        await broker.topic("both", cleanup_policy="compact,delete")
        await broker.write("orders", 1000)
        await broker.write("both", 1000)

        assert await trim(broker, 1) == (ErrorCode.POLICY_VIOLATION, -1)
        assert broker.log("orders").start_offset == 0
        assert await trim(broker, 1, topic="both") == (ErrorCode.NONE, 1)

    run_with_broker(body)


def test_deleted_records_stay_deleted_after_restart():
    async def scenario(_random):
        stores = Stores()
        async with running_broker(stores) as broker:
            await broker.topic("orders")
            await broker.write("orders", 1000, 2000, 3000)
            await trim(broker, 2)
        async with running_broker(stores) as broker:
            assert broker.log("orders").start_offset == 2

    virtual_time.run(scenario, seed=0)


@pytest.mark.parametrize("version", DELETE_RECORDS.versions)
def test_delete_records_is_refused_if_admin_is_disabled(version):
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1000)

        assert await trim(broker, 1, version=version) == (ErrorCode.POLICY_VIOLATION, -1)
        assert broker.log("orders").start_offset == 0

    run_with_broker(body, config=ADMIN_DISABLED)
