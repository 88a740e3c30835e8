"""AlterPartitionReassignments and ListPartitionReassignments: partitions move to new owners."""

import pytest
from structlog.testing import capture_logs

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.alter_partition_reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
    AlterPartitionReassignmentsRequest,
    PartitionToReassign,
    TopicToReassign,
)
from kafscale.protocol.messages.list_partition_reassignments import (
    LIST_PARTITION_REASSIGNMENTS,
    ListPartitionReassignmentsRequest,
    TopicToList,
)
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, TopicToDescribe
from unit.broker.in_memory_broker import ADMIN_DISABLED, NODE_ID, run_with_broker
from unit.broker.other_brokers import register, remove, wait_for_owner

OTHER = NODE_ID + 1
THIRD = NODE_ID + 2


async def reassign(broker, topic="orders", *, version=1, **replicas):
    """Request replicas as `p0=[1, 2]`; return the error code of each partition."""
    partitions = [PartitionToReassign(int(name[1:]), each) for name, each in replicas.items()]
    request = AlterPartitionReassignmentsRequest(topics=[TopicToReassign(topic, partitions)])
    response = await broker.ask(ALTER_PARTITION_REASSIGNMENTS, request, version)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    [topic] = response.topics
    return [partition.error_code for partition in topic.partitions]


async def in_progress(broker, topics=None):
    request = ListPartitionReassignmentsRequest(topics=topics)
    response = await broker.ask(LIST_PARTITION_REASSIGNMENTS, request)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    return {
        (topic.name, each.index): (each.replicas, each.adding_replicas, each.removing_replicas)
        for topic in response.topics
        for each in topic.partitions
    }


async def described(broker, index=0):
    """The leader, the replicas, and those in sync and offline."""
    request = MetadataRequest(topics=[TopicToDescribe(name="orders")])
    [topic] = (await broker.ask(METADATA, request)).topics
    partition = topic.partitions[index]
    return (
        partition.leader_id,
        partition.replicas,
        partition.in_sync_replicas,
        partition.offline_replicas,
    )


@pytest.mark.parametrize("version", ALTER_PARTITION_REASSIGNMENTS.versions)
def test_partition_is_listed_until_the_new_owner_has_it(version):
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1000)
        await register(broker, OTHER)
        assert await in_progress(broker) == {}
        assert await reassign(broker, p0=[OTHER], version=version) == [ErrorCode.NONE]

        moving = ([OTHER, NODE_ID], [OTHER], [NODE_ID])
        assert await in_progress(broker) == {("orders", 0): moving}
        assert await in_progress(broker, [TopicToList("orders", [0])]) == {("orders", 0): moving}
        assert await in_progress(broker, [TopicToList("orders", [1])]) == {}
        assert await described(broker) == (NODE_ID, [OTHER, NODE_ID], [NODE_ID], [])
        await wait_for_owner(broker, "orders", 0, OTHER)
        assert await in_progress(broker) == {}
        assert await described(broker) == (OTHER, [OTHER], [OTHER], [])
        moved = broker.services.cluster.assignments("orders")[0]
        assert (moved.fully_rolled, moved.end_offset) == (True, 1), "it was transferred"

    run_with_broker(body)


def test_cancelled_reassignment_leaves_the_partition_where_it_is():
    async def body(broker):
        await broker.topic("orders", 2)
        await register(broker, OTHER)
        await reassign(broker, p0=[NODE_ID], p1=[NODE_ID])
        await wait_for_owner(broker, "orders", 1, NODE_ID)
        assert await reassign(broker, p0=None) == [ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]
        await reassign(broker, p0=[OTHER], p1=[OTHER])
        assert await reassign(broker, p0=None) == [ErrorCode.NONE]
        assert ("orders", 0) not in await in_progress(broker)
        await wait_for_owner(broker, "orders", 1, OTHER)
        assert await described(broker) == (NODE_ID, [NODE_ID], [NODE_ID], [])
        assert await reassign(broker, p0=None) == [ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]

    run_with_broker(body)


def test_list_of_replicas_is_kept_as_a_whole():
    async def body(broker):
        await broker.topic("orders")
        await register(broker, OTHER, THIRD)
        await reassign(broker, p0=[OTHER, THIRD])
        await wait_for_owner(broker, "orders", 0, OTHER)
        assert await described(broker) == (OTHER, [OTHER, THIRD], [OTHER, THIRD], [])
        await remove(broker, OTHER)
        await wait_for_owner(broker, "orders", 0, THIRD)
        assert await described(broker) == (THIRD, [OTHER, THIRD], [THIRD], [OTHER])
        assert await in_progress(broker) == {}
        await remove(broker, THIRD)
        await wait_for_owner(broker, "orders", 0, NODE_ID)
        assert await described(broker) == (NODE_ID, [NODE_ID], [NODE_ID], [])
        assert await in_progress(broker) == {}, "there is no broker to move it to"

    run_with_broker(body)


def test_replication_factor_change_can_be_disallowed():
    async def body(broker):
        await broker.topic("orders")
        await register(broker, OTHER)
        partition = PartitionToReassign(0, [OTHER, NODE_ID])
        request = AlterPartitionReassignmentsRequest(
            topics=[TopicToReassign("orders", [partition])], allow_replication_factor_change=False
        )
        response = await broker.ask(ALTER_PARTITION_REASSIGNMENTS, request)
        [refused] = response.topics[0].partitions
        assert not response.allow_replication_factor_change
        assert refused.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        assert refused.error_message == "The replication factor is changed from 1 to 2"
        assert broker.services.topic_store.topics["orders"].replicas == {}

    run_with_broker(body)


def test_valid_partitions_are_reassigned_beside_invalid_ones():
    async def body(broker):
        await broker.topic("orders", 4)
        with capture_logs() as lines:
            codes = await reassign(
                broker, p0=[NODE_ID], p1=[OTHER], p2=[], p3=[NODE_ID] * 2, p9=[1]
            )
        assert codes == [
            ErrorCode.NONE,
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert broker.services.topic_store.topics["orders"].replicas == {0: (NODE_ID,)}
        [audited] = [line for line in lines if line["event"] == "changed"]
        assert audited["change"] == "partitions reassigned"
        assert (audited["topic"], audited["replicas"]) == ("orders", [(0, (NODE_ID,))])

    run_with_broker(body)


def test_disabled_admin_apis_refuse_the_request():
    async def body(broker):
        await broker.topic("orders")
        request = AlterPartitionReassignmentsRequest(
            topics=[TopicToReassign("orders", [PartitionToReassign(0, [NODE_ID])])]
        )
        response = await broker.ask(ALTER_PARTITION_REASSIGNMENTS, request)
        assert response.error_code == ErrorCode.POLICY_VIOLATION
        assert response.topics[0].partitions[0].error_code == ErrorCode.POLICY_VIOLATION
        assert broker.services.topic_store.topics["orders"].replicas == {}

    run_with_broker(body, config=ADMIN_DISABLED)
