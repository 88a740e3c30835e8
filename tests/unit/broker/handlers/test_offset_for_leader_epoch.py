"""OffsetForLeaderEpoch: end offsets of leader epochs."""

import pytest

from doubles import virtual_time
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.offset_for_leader_epoch import (
    OFFSET_FOR_LEADER_EPOCH,
    EpochOfPartition,
    EpochsOfTopic,
    OffsetForLeaderEpochRequest,
)
from unit.broker.in_memory_broker import Stores, run_with_broker, running_broker


async def end(
    broker,
    epoch,
    *,
    topic="orders",
    index=0,
    current=-1,
    version=OFFSET_FOR_LEADER_EPOCH.version_max,
):
    """The error, the epoch and its end offset."""
    requested = EpochsOfTopic(topic, [EpochOfPartition(index, current, epoch)])
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[requested])
    response = await broker.ask(OFFSET_FOR_LEADER_EPOCH, request, version)
    assert [result.name for result in response.topics] == [topic]
    [result] = response.topics[0].partitions
    assert result.index == index
    return result.error_code, result.leader_epoch, result.end_offset


@pytest.mark.parametrize("version", OFFSET_FOR_LEADER_EPOCH.versions)
def test_epoch_ends_where_the_next_begins(version):
    async def scenario(_random):
        stores = Stores()
        async with running_broker(stores) as broker:
            await broker.topic("orders")
            await broker.write("orders", 1000, 2000)
            first = broker.log("orders").leader_epoch
        async with running_broker(stores) as broker:
            await broker.write("orders", 3000)
            second = broker.log("orders").leader_epoch
            assert second > first

            expected = {first: (first, 2), second: (second, 3), second + 1: (-1, -1), -1: (-1, -1)}
            for epoch, (result, end_offset) in expected.items():
                named = result if version >= 1 else -1
                expected = (ErrorCode.NONE, named, end_offset)
                assert await end(broker, epoch, version=version) == expected

    virtual_time.run(scenario, seed=0)


def test_epoch_without_records_ends_at_the_log_end():
    async def scenario(_random):
        stores = Stores()
        async with running_broker(stores) as broker:
            await broker.topic("orders")
            await broker.topic("empty")
            await broker.write("orders", 1000, 2000)
        async with running_broker(stores):
            pass
        async with running_broker(stores) as broker:
            assert broker.log("orders").leader_epoch == 2
            # A consumer at the end of the log has these epochs from ListOffsets.
            assert await end(broker, 2) == (ErrorCode.NONE, 2, 2)
            assert await end(broker, 1) == (ErrorCode.NONE, 0, 2)
            assert await end(broker, 1, topic="empty") == (ErrorCode.NONE, 1, 0)
            assert await end(broker, 3) == (ErrorCode.NONE, -1, -1)

    virtual_time.run(scenario, seed=0)


def test_other_leader_epoch_is_refused():
    async def body(broker):
        await broker.topic("orders")
        partition = broker.log("orders")
        partition.leader_epoch = 5
        partition.epochs.assign(5, 0)

        assert await end(broker, 5, current=4) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
        assert await end(broker, 5, current=6) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)
        assert await end(broker, 5, current=5) == (ErrorCode.NONE, 5, 0)

    run_with_broker(body)


@pytest.mark.parametrize("place", [{"topic": "missing"}, {"index": 1}])
def test_missing_partition_is_unknown(place):
    async def body(broker):
        await broker.topic("orders")
        assert await end(broker, 0, **place) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)

    run_with_broker(body)
