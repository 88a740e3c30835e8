"""AlterReplicaLogDirs: what the broker owns lies in its only directory."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.alter_replica_log_dirs import (
    ALTER_REPLICA_LOG_DIRS,
    AlterReplicaLogDirsRequest,
    LogDirToAlter,
    TopicToMove,
)
from kafscale.protocol.messages.describe_log_dirs import DESCRIBE_LOG_DIRS, DescribeLogDirsRequest
from unit.broker.in_memory_broker import run_with_broker


@pytest.mark.parametrize("version", ALTER_REPLICA_LOG_DIRS.versions)
def test_move_to_the_directory_that_is_described_changes_nothing(version):
    async def body(broker):
        await broker.topic("orders")
        described = await broker.ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(None))
        [directory] = described.log_dirs
        request = AlterReplicaLogDirsRequest(
            [
                LogDirToAlter(
                    directory.path, [TopicToMove("orders", [0, 1]), TopicToMove("missing", [0])]
                ),
                LogDirToAlter("/nowhere", [TopicToMove("orders", [0])]),
            ]
        )
        response = await broker.ask(ALTER_REPLICA_LOG_DIRS, request, version)
        codes = {
            topic.name: [(each.index, each.error_code) for each in topic.partitions]
            for topic in response.topics
        }
        assert codes == {
            "orders": [
                (0, ErrorCode.NONE),
                (1, ErrorCode.REPLICA_NOT_AVAILABLE),
                (0, ErrorCode.LOG_DIR_NOT_FOUND),
            ],
            "missing": [(0, ErrorCode.REPLICA_NOT_AVAILABLE)],
        }
        assert await broker.ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(None)) == described

    run_with_broker(body)
