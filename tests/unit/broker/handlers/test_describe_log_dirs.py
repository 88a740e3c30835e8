"""DescribeLogDirs: one directory, which is the object store."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_log_dirs import (
    DESCRIBE_LOG_DIRS,
    DescribeLogDirsRequest,
    TopicToDescribe,
)
from unit.broker.in_memory_broker import run_with_broker


async def describe(broker, topics, version=DESCRIBE_LOG_DIRS.version_max):
    """The directory, and the sizes of its partitions."""
    response = await broker.ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics), version)
    [result] = response.log_dirs
    assert response.error_code == result.error_code == ErrorCode.NONE
    return result, {
        (topic.name, partition.index): partition.size_bytes
        for topic in result.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", DESCRIBE_LOG_DIRS.versions)
def test_partition_size_is_the_size_of_its_records(version):
    async def body(broker):
        await broker.topic("orders", 2)
        await broker.write("orders", 1000)
        result, before = await describe(broker, None, version)

        assert result.path == "memory"
        assert result.total_bytes == result.usable_bytes == -1
        assert before["orders", 0] > 0
        assert before["orders", 1] == 0
        await broker.roll("orders")
        await broker.write("orders", 2000)
        _, after = await describe(broker, None, version)
        assert after["orders", 0] > before["orders", 0]

    run_with_broker(body)


def test_requested_existing_partitions_only():
    async def body(broker):
        await broker.topic("orders", 2)
        await broker.topic("other")
        requested = [TopicToDescribe("orders", [1, 5]), TopicToDescribe("missing", [0])]

        assert set((await describe(broker, requested))[1]) == {("orders", 1)}
        assert set((await describe(broker, []))[1]) == set()
        assert set((await describe(broker, None))[1]) == {
            ("orders", 0),
            ("orders", 1),
            ("other", 0),
        }

    run_with_broker(body)
