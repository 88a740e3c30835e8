"""Requests about the placement of partitions: both servers have one broker, with id 1."""

import pytest
from msgspec.structs import replace

from conformance.groups.servers import START_S_MAX
from kafscale.protocol.messages.alter_partition_reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
    AlterPartitionReassignmentsRequest,
    PartitionToReassign,
    TopicToReassign,
)
from kafscale.protocol.messages.alter_replica_log_dirs import (
    ALTER_REPLICA_LOG_DIRS,
    AlterReplicaLogDirsRequest,
    LogDirToAlter,
    TopicToMove,
)
from kafscale.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    TopicToGrow,
)
from kafscale.protocol.messages.create_partitions import PartitionAssignment as NewPartition
from kafscale.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreateTopicsRequest,
    PartitionAssignment,
    TopicToCreate,
)
from kafscale.protocol.messages.describe_quorum import (
    DESCRIBE_QUORUM,
    DescribeQuorumRequest,
    PartitionToDescribe,
)
from kafscale.protocol.messages.describe_quorum import TopicToDescribe as QuorumTopicToDescribe
from kafscale.protocol.messages.describe_topic_partitions import (
    DESCRIBE_TOPIC_PARTITIONS,
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicToDescribe,
)
from kafscale.protocol.messages.elect_leaders import (
    ELECT_LEADERS,
    ElectLeadersRequest,
    TopicToElect,
)
from kafscale.protocol.messages.list_partition_reassignments import (
    LIST_PARTITION_REASSIGNMENTS,
    ListPartitionReassignmentsRequest,
    TopicToList,
)

pytestmark = pytest.mark.timeout(START_S_MAX)

LISTS = [[1], [], [1, 1], [2], [1, 2], [-1], [2, 1], None]


# --- reassignments ------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ALTER_PARTITION_REASSIGNMENTS.versions)
@pytest.mark.parametrize("allow_change", [True, False])
@pytest.mark.parametrize("replicas", LISTS, ids=str)
def test_reassign(client, version, allow_change, replicas):
    topics = [
        TopicToReassign("three", [PartitionToReassign(index, replicas) for index in (0, 2, 3, -1)]),
        TopicToReassign("missing", [PartitionToReassign(0, replicas)]),
        TopicToReassign("", [PartitionToReassign(0, replicas)]),
        TopicToReassign("one", []),
    ]
    request = AlterPartitionReassignmentsRequest(
        topics=topics, allow_replication_factor_change=allow_change or version == 0
    )
    client.compare(ALTER_PARTITION_REASSIGNMENTS, version, request)


def test_reassign_a_partition_twice_in_a_request(client):
    partitions = [PartitionToReassign(0, [1]), PartitionToReassign(0, [2])]
    topics = [TopicToReassign("one", partitions), TopicToReassign("one", partitions[:1])]
    request = AlterPartitionReassignmentsRequest(topics=topics)
    client.compare(ALTER_PARTITION_REASSIGNMENTS, 1, request)


@pytest.mark.parametrize(
    "topics",
    [None, [], [TopicToList("three", [0, 1, 7])], [TopicToList("missing", [0])]],
    ids=["all", "none", "some", "missing"],
)
def test_list_reassignments(client, topics):
    request = ListPartitionReassignmentsRequest(topics=topics)
    client.compare(LIST_PARTITION_REASSIGNMENTS, 0, request)


# --- elections ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ELECT_LEADERS.versions)
@pytest.mark.parametrize("election_type", [0, 1])
@pytest.mark.parametrize(
    "topics",
    [
        None,
        [],
        [TopicToElect("three", [2, 0, 5])],
        [TopicToElect("missing", [0]), TopicToElect("one", [0, 0])],
    ],
    ids=["all", "none", "some", "missing"],
)
def test_elect(client, version, election_type, topics):
    request = ElectLeadersRequest(election_type if version else 0, topics)
    is_all = topics is None
    client.compare(
        ELECT_LEADERS, version, request, ours=without_internal_topics if is_all else None
    )


def test_elect_with_an_unknown_type(client):
    client.compare(ELECT_LEADERS, 2, ElectLeadersRequest(2, [TopicToElect("one", [0])]))


def without_internal_topics(response):
    """Kafka's group coordinator has a topic. Kafka's topics have no order."""
    topics = [topic for topic in response.topics if topic.name != "__consumer_offsets"]
    return replace(response, topics=sorted(topics, key=lambda topic: topic.name))


# --- new topics and partitions ------------------------------------------------------------------


@pytest.mark.parametrize(
    "assignments",
    [
        {},
        {0: []},
        {0: [1, 1]},
        {0: [2]},
        {0: [1, 2]},
        {1: [1]},
        {-1: [1]},
        {0: [1], 2: [1]},
        {0: [1], 1: []},
        {0: [1], 1: [1]},
        {1: [1], 0: [1]},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("partition_count", "factor"), [(-1, -1), (1, -1), (-1, 1), (1, 1), (0, -1), (-1, 0), (1, -2)]
)
def test_create_topic_with_assignments(client, assignments, partition_count, factor):
    requested = [PartitionAssignment(index, brokers) for index, brokers in assignments.items()]
    topic = TopicToCreate("created", partition_count, factor, requested)
    request = CreateTopicsRequest([topic], validate_only=True)
    # Later versions describe the topic that was not created.
    client.compare(CREATE_TOPICS, 4, request)


def test_create_topic_with_a_partition_assigned_twice(client):
    twice = [PartitionAssignment(0, [1]), PartitionAssignment(0, [1])]
    request = CreateTopicsRequest([TopicToCreate("created", -1, -1, twice)], validate_only=True)
    client.compare(CREATE_TOPICS, 7, request)


@pytest.mark.parametrize(
    "assignments",
    [
        None,
        [],
        [[1]],
        [[1], [1]],
        [[1], [1], [1]],
        [[], [1]],
        [[1], []],
        [[1, 1], [1]],
        [[2], [1]],
        [[1], [1, 2]],
        [[-1], [1]],
    ],
    ids=str,
)
def test_create_partitions_with_assignments(client, assignments):
    lists = None if assignments is None else [NewPartition(brokers) for brokers in assignments]
    request = CreatePartitionsRequest([TopicToGrow("three", 5, lists)], 1000, validate_only=True)
    client.compare(CREATE_PARTITIONS, 3, request)


# --- descriptions -------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [-1, 0, 1, 2, 3, 4, 2000])
@pytest.mark.parametrize(
    "cursor",
    [
        None,
        Cursor("one", 0),
        Cursor("three", 1),
        Cursor("three", 3),
        Cursor("z", 0),
        Cursor("missing", 0),
        Cursor("", 0),
        Cursor("three", -1),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "names",
    [["three", "one"], ["one", "missing", "three"], ["three", "three"], ["a b", "one"]],
    ids=str,
)
def test_describe_topic_partitions(client, limit, cursor, names):
    topics = [TopicToDescribe(name) for name in names]
    request = DescribeTopicPartitionsRequest(topics, limit, cursor)
    client.compare(DESCRIBE_TOPIC_PARTITIONS, 0, request)


@pytest.mark.parametrize("version", ALTER_REPLICA_LOG_DIRS.versions)
def test_unknown_log_directory(client, version):
    topics = [TopicToMove("three", [0]), TopicToMove("missing", [0])]
    request = AlterReplicaLogDirsRequest([LogDirToAlter("/nowhere", topics)])
    client.compare(ALTER_REPLICA_LOG_DIRS, version, request)
    client.compare(ALTER_REPLICA_LOG_DIRS, version, AlterReplicaLogDirsRequest([]))


@pytest.mark.parametrize("version", DESCRIBE_QUORUM.versions)
@pytest.mark.parametrize("topics", [[], ["other"], ["__cluster_metadata", "other"]], ids=str)
def test_describe_quorum_of_unknown_topics(client, version, topics):
    requested = [QuorumTopicToDescribe(name, [PartitionToDescribe(0)]) for name in topics]
    client.compare(DESCRIBE_QUORUM, version, DescribeQuorumRequest(requested))
