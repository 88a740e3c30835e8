"""Cases for the permissions table: groups."""

from typing import Any

from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from kafscale.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
)
from kafscale.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from kafscale.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from kafscale.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from kafscale.protocol.messages.join_group import JOIN_GROUP, JoinGroupRequest
from kafscale.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, LeavingMember
from kafscale.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from kafscale.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    PartitionToCommit,
    TopicToCommit,
)
from kafscale.protocol.messages.offset_delete import (
    OFFSET_DELETE,
    OffsetDeleteRequest,
    PartitionToDelete,
    TopicToDelete,
)
from kafscale.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    GroupToFetch,
    OffsetFetchRequest,
    TopicToFetch,
)
from kafscale.protocol.messages.sync_group import SYNC_GROUP, SyncGroupRequest
from unit.broker.handlers.authorization_cases import (
    TOPIC,
    Case,
    PreparedTopic,
    first_group,
    first_partition,
    top_level_error,
)
from unit.broker.handlers.group_members import GROUP, REBALANCE_TIMEOUT_MS, ConsumerMember
from unit.broker.in_memory_broker import InMemoryBroker


def commit(scene: PreparedTopic, _version: int) -> OffsetCommitRequest:
    topic = TopicToCommit(TOPIC, scene.topic.id, [PartitionToCommit(index=0, committed_offset=1)])
    return OffsetCommitRequest(group_id=GROUP, topics=[topic])


def fetch(scene: PreparedTopic, _version: int) -> OffsetFetchRequest:
    topics = [TopicToFetch(TOPIC, scene.topic.id, [0])]
    groups = [GroupToFetch(group_id=GROUP, topics=topics)]
    return OffsetFetchRequest(group_id=GROUP, topics=topics, groups=groups)


def fetched_group(response: Any) -> int:
    """Before v2, an error of the group is in its partitions."""
    if response.groups:
        return response.groups[0].error_code
    return response.error_code or first_partition(response)


def fetched_topic(response: Any) -> int:
    return first_partition(response.groups[0] if response.groups else response)


def find(key_type: int, key: str) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key=key, keys=[key], key_type=key_type)


def find_coordinator_error(response: Any) -> int:
    return (
        response.coordinators[0].error_code if response.coordinators else top_level_error(response)
    )


def delete_offset(*_: object) -> OffsetDeleteRequest:
    topics = [TopicToDelete(TOPIC, [PartitionToDelete(0)])]
    return OffsetDeleteRequest(group_id=GROUP, topics=topics)


def consumer_heartbeat(*_: object) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="a-member",
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        subscribed_topic_names=[TOPIC],
        owned_partitions=[],
    )


async def with_member(broker: InMemoryBroker) -> None:
    await ConsumerMember(broker, "another-member").join(TOPIC)


async def with_offsets(broker: InMemoryBroker) -> None:
    topic = TopicToCommit(TOPIC, partitions=[PartitionToCommit(index=0, committed_offset=1)])
    await broker.ask(OFFSET_COMMIT, OffsetCommitRequest(group_id=GROUP, topics=[topic]), 9)


CASES = [
    Case(OFFSET_COMMIT, ResourceType.GROUP, Operation.READ, commit, first_partition),
    Case(OFFSET_COMMIT, ResourceType.TOPIC, Operation.READ, commit, first_partition),
    Case(
        OFFSET_FETCH,
        ResourceType.GROUP,
        Operation.DESCRIBE,
        fetch,
        fetched_group,
        prepare=with_offsets,
    ),
    Case(
        OFFSET_FETCH,
        ResourceType.TOPIC,
        Operation.DESCRIBE,
        fetch,
        fetched_topic,
        prepare=with_offsets,
    ),
    Case(
        FIND_COORDINATOR,
        ResourceType.GROUP,
        Operation.DESCRIBE,
        lambda *_: find(0, GROUP),
        find_coordinator_error,
    ),
    Case(
        FIND_COORDINATOR,
        ResourceType.TRANSACTIONAL_ID,
        Operation.DESCRIBE,
        lambda *_: find(1, "transfers"),
        find_coordinator_error,
        versions=range(1, 7),
    ),
    Case(
        JOIN_GROUP,
        ResourceType.GROUP,
        Operation.READ,
        lambda *_: JoinGroupRequest(group_id=GROUP, session_timeout_ms=1),
        top_level_error,
    ),
    Case(
        HEARTBEAT,
        ResourceType.GROUP,
        Operation.READ,
        lambda *_: HeartbeatRequest(group_id=GROUP),
        top_level_error,
    ),
    Case(
        LEAVE_GROUP,
        ResourceType.GROUP,
        Operation.READ,
        lambda *_: LeaveGroupRequest(group_id=GROUP, members=[LeavingMember("unknown")]),
        top_level_error,
    ),
    Case(
        SYNC_GROUP,
        ResourceType.GROUP,
        Operation.READ,
        lambda *_: SyncGroupRequest(group_id=GROUP),
        top_level_error,
    ),
    Case(
        DESCRIBE_GROUPS,
        ResourceType.GROUP,
        Operation.DESCRIBE,
        lambda *_: DescribeGroupsRequest(group_ids=[GROUP]),
        first_group,
    ),
    Case(
        LIST_GROUPS,
        ResourceType.GROUP,
        Operation.DESCRIBE,
        lambda *_: ListGroupsRequest(),
        lambda response: [group.group_id for group in response.groups],
        prepare=with_offsets,
    ),
    Case(
        DELETE_GROUPS,
        ResourceType.GROUP,
        Operation.DELETE,
        lambda *_: DeleteGroupsRequest(group_ids=[GROUP]),
        first_group,
    ),
    Case(
        OFFSET_DELETE,
        ResourceType.GROUP,
        Operation.DELETE,
        delete_offset,
        top_level_error,
        prepare=with_offsets,
    ),
    Case(
        OFFSET_DELETE,
        ResourceType.TOPIC,
        Operation.READ,
        delete_offset,
        first_partition,
        prepare=with_offsets,
    ),
    Case(
        CONSUMER_GROUP_HEARTBEAT,
        ResourceType.GROUP,
        Operation.READ,
        consumer_heartbeat,
        top_level_error,
    ),
    Case(
        CONSUMER_GROUP_HEARTBEAT,
        ResourceType.TOPIC,
        Operation.DESCRIBE,
        consumer_heartbeat,
        top_level_error,
    ),
    Case(
        CONSUMER_GROUP_DESCRIBE,
        ResourceType.GROUP,
        Operation.DESCRIBE,
        lambda *_: ConsumerGroupDescribeRequest(group_ids=[GROUP]),
        first_group,
    ),
    Case(
        CONSUMER_GROUP_DESCRIBE,
        ResourceType.TOPIC,
        Operation.DESCRIBE,
        lambda *_: ConsumerGroupDescribeRequest(group_ids=[GROUP]),
        first_group,
        prepare=with_member,
    ),
]
