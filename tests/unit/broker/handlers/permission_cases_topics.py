"""Cases for the permissions table: topics and records."""

from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.codec.wire import UUID_ZERO
from kafscale.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    TopicToGrow,
)
from kafscale.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreateTopicsRequest,
    TopicToCreate,
)
from kafscale.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsRequest,
    PartitionToTrim,
    TopicToTrim,
)
from kafscale.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    TopicToDelete,
)
from kafscale.protocol.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    DescribeProducersRequest,
)
from kafscale.protocol.messages.describe_producers import TopicToDescribe as ProducersToDescribe
from kafscale.protocol.messages.describe_topic_partitions import (
    DESCRIBE_TOPIC_PARTITIONS,
    DescribeTopicPartitionsRequest,
)
from kafscale.protocol.messages.describe_topic_partitions import (
    TopicToDescribe as PartitionsToDescribe,
)
from kafscale.protocol.messages.fetch import (
    FETCH,
    FetchRequest,
    PartitionToFetch,
    ReplicaState,
    TopicToFetch,
)
from kafscale.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from kafscale.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsRequest,
    PartitionToList,
    TopicToList,
)
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, TopicToDescribe
from kafscale.protocol.messages.offset_for_leader_epoch import (
    OFFSET_FOR_LEADER_EPOCH,
    EpochOfPartition,
    EpochsOfTopic,
    OffsetForLeaderEpochRequest,
)
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProduceRequest,
    TopicToProduce,
)
from kafscale.records import Record, build
from unit.broker.handlers.authorization_cases import (
    MISSING,
    TOPIC,
    Case,
    PreparedTopic,
    first_partition,
    first_topic,
    top_level_error,
)

TRANSACTIONAL_ID = "transfers"


def produce(scene: PreparedTopic, version: int, name: str = TOPIC, **fields) -> ProduceRequest:
    topic_id = scene.topic.id if version >= 13 else UUID_ZERO
    batch = bytes(build([Record(0, 1, None, b"value")]))
    partitions = [PartitionToProduce(index=0, records=memoryview(batch))]
    topic = TopicToProduce(name=name, topic_id=topic_id, partitions=partitions)
    return ProduceRequest(**{"acks": 1, "timeout_ms": 1000, "topics": [topic], **fields})


def fetch(scene: PreparedTopic, version: int, **fields) -> FetchRequest:
    topic_id = scene.topic.id if version >= 13 else UUID_ZERO
    partitions = [PartitionToFetch(index=0, offset=0, max_bytes=1000)]
    topic = TopicToFetch(name=TOPIC, topic_id=topic_id, partitions=partitions)
    return FetchRequest(topics=[topic], max_wait_ms=0, **fields)


def fetch_as_replica(scene: PreparedTopic, version: int) -> FetchRequest:
    if version >= 15:
        return fetch(scene, version, replica_state=ReplicaState(replica_id=8))
    return fetch(scene, version, replica_id=8)


def metadata(_scene: PreparedTopic, _version: int, name: str = TOPIC) -> MetadataRequest:
    return MetadataRequest(topics=[TopicToDescribe(name=name)])


def metadata_by_id(scene: PreparedTopic, _version: int) -> MetadataRequest:
    return MetadataRequest(topics=[TopicToDescribe(name=None, topic_id=scene.topic.id)])


def delete(scene: PreparedTopic, version: int) -> DeleteTopicsRequest:
    del scene
    if version >= 6:
        return DeleteTopicsRequest(topics=[TopicToDelete(name=TOPIC)])
    return DeleteTopicsRequest(topic_names=[TOPIC])


def create(_scene: PreparedTopic, _version: int) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[TopicToCreate(MISSING, 1, 1)], validate_only=True)


CASES = [
    Case(PRODUCE, ResourceType.TOPIC, Operation.WRITE, produce, first_partition),
    Case(
        PRODUCE,
        ResourceType.TOPIC,
        Operation.CREATE,
        lambda scene, version: produce(scene, version, MISSING),
        first_partition,
        versions=range(13),
    ),
    Case(
        PRODUCE,
        ResourceType.TRANSACTIONAL_ID,
        Operation.WRITE,
        lambda scene, version: produce(scene, version, transactional_id=TRANSACTIONAL_ID),
        first_partition,
        versions=range(3, 14),
    ),
    Case(FETCH, ResourceType.TOPIC, Operation.READ, fetch, first_partition),
    Case(FETCH, ResourceType.CLUSTER, Operation.CLUSTER_ACTION, fetch_as_replica, first_partition),
    Case(
        LIST_OFFSETS,
        ResourceType.TOPIC,
        Operation.DESCRIBE,
        lambda *_: ListOffsetsRequest(
            topics=[TopicToList(TOPIC, [PartitionToList(index=0, timestamp_ms=-1)])]
        ),
        first_partition,
    ),
    Case(METADATA, ResourceType.TOPIC, Operation.DESCRIBE, metadata, first_topic),
    Case(
        METADATA,
        ResourceType.TOPIC,
        Operation.DESCRIBE,
        metadata_by_id,
        first_topic,
        versions=range(12, 14),
        label="by id",
    ),
    Case(
        METADATA,
        ResourceType.TOPIC,
        Operation.CREATE,
        lambda scene, version: metadata(scene, version, MISSING),
        first_topic,
    ),
    Case(
        METADATA,
        ResourceType.CLUSTER,
        Operation.DESCRIBE,
        lambda *_: MetadataRequest(topics=[], include_cluster_authorized_operations=True),
        lambda response: response.cluster_authorized_operations,
        versions=range(8, 11),
    ),
    Case(CREATE_TOPICS, ResourceType.TOPIC, Operation.CREATE, create, first_topic),
    Case(
        CREATE_TOPICS,
        ResourceType.TOPIC,
        Operation.DESCRIBE_CONFIGS,
        create,
        lambda response: response.topics[0].config_error_code,
        versions=range(5, 8),
    ),
    Case(DELETE_TOPICS, ResourceType.TOPIC, Operation.DELETE, delete, first_topic),
    Case(
        DELETE_TOPICS,
        ResourceType.TOPIC,
        Operation.DELETE,
        lambda scene, _: DeleteTopicsRequest(topics=[TopicToDelete(topic_id=scene.topic.id)]),
        first_topic,
        versions=range(6, 7),
        label="by id",
    ),
    Case(DELETE_TOPICS, ResourceType.TOPIC, Operation.DESCRIBE, delete, first_topic),
    Case(
        DELETE_RECORDS,
        ResourceType.TOPIC,
        Operation.DELETE,
        lambda *_: DeleteRecordsRequest(topics=[TopicToTrim(TOPIC, [PartitionToTrim(0, -1)])]),
        first_partition,
    ),
    Case(
        INIT_PRODUCER_ID,
        ResourceType.TRANSACTIONAL_ID,
        Operation.WRITE,
        lambda *_: InitProducerIdRequest(transactional_id=TRANSACTIONAL_ID),
        top_level_error,
    ),
    Case(
        INIT_PRODUCER_ID,
        ResourceType.CLUSTER,
        Operation.IDEMPOTENT_WRITE,
        lambda *_: InitProducerIdRequest(transactional_id=None),
        top_level_error,
    ),
    Case(
        OFFSET_FOR_LEADER_EPOCH,
        ResourceType.TOPIC,
        Operation.DESCRIBE,
        lambda *_: OffsetForLeaderEpochRequest(
            topics=[EpochsOfTopic(TOPIC, [EpochOfPartition(index=0)])]
        ),
        first_partition,
    ),
    Case(
        CREATE_PARTITIONS,
        ResourceType.TOPIC,
        Operation.ALTER,
        lambda *_: CreatePartitionsRequest(topics=[TopicToGrow(TOPIC, 2, None)]),
        first_topic,
    ),
    Case(
        DESCRIBE_PRODUCERS,
        ResourceType.TOPIC,
        Operation.READ,
        lambda *_: DescribeProducersRequest(topics=[ProducersToDescribe(TOPIC, [0])]),
        first_partition,
    ),
    Case(
        DESCRIBE_TOPIC_PARTITIONS,
        ResourceType.TOPIC,
        Operation.DESCRIBE,
        lambda *_: DescribeTopicPartitionsRequest(topics=[PartitionsToDescribe(TOPIC)]),
        first_topic,
    ),
]
