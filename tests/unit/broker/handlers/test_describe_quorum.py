"""DescribeQuorum: the controller as leader, and revisions of the metadata store as offsets."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_quorum import (
    DESCRIBE_QUORUM,
    DescribeQuorumRequest,
    PartitionToDescribe,
    TopicToDescribe,
)
from unit.broker.in_memory_broker import NODE_ID, run_with_broker
from unit.broker.other_brokers import register

OTHER = NODE_ID + 1


async def describe(broker, version=DESCRIBE_QUORUM.version_max):
    topic = TopicToDescribe("__cluster_metadata", [PartitionToDescribe(0)])
    response = await broker.ask(DESCRIBE_QUORUM, DescribeQuorumRequest([topic]), version)
    assert response.error_code == ErrorCode.NONE
    return response.topics[0].partitions[0], response.nodes


@pytest.mark.parametrize("version", DESCRIBE_QUORUM.versions)
def test_controller_is_the_only_voter(version):
    async def body(broker):
        await register(broker, OTHER)
        quorum, nodes = await describe(broker, version)
        assert (quorum.error_code, quorum.leader_id) == (ErrorCode.NONE, NODE_ID)
        [voter] = quorum.current_voters
        assert (voter.replica_id, voter.log_end_offset) == (NODE_ID, quorum.high_watermark)
        [observer] = quorum.observers
        assert (observer.replica_id, observer.log_end_offset) == (OTHER, -1)
        if version >= 2:
            assert [(node.node_id, node.listeners[0].port) for node in nodes] == [(NODE_ID, 9092)]

    run_with_broker(body)


def test_offset_is_the_revision_of_the_store():
    async def body(broker):
        before, _ = await describe(broker)
        await broker.topic("orders")
        after, _ = await describe(broker)
        assert after.high_watermark > before.high_watermark > after.leader_epoch > 0
        assert after.leader_epoch == before.leader_epoch == broker.node.controller.term.mod_revision

    run_with_broker(body)
