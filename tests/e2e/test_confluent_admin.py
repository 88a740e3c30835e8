"""Topic administration with librdkafka's AdminClient."""

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

pytestmark = pytest.mark.timeout(40)


@pytest.fixture
def admin(broker):
    return AdminClient({"bootstrap.servers": broker.address})


def result(futures):
    """Return the result of the only future."""
    (future,) = futures.values()
    return future.result(timeout=15)


def create(admin, topic, partitions=1, **config):
    settings = {name.replace("_", "."): str(value) for name, value in config.items()}
    result(admin.create_topics([NewTopic(topic, partitions, config=settings)]))


def code_of(error):
    return error.value.args[0].code()


def test_topic_is_created_described_and_deleted(admin, topic):
    create(admin, topic, 3)
    assert len(admin.list_topics(timeout=10).topics[topic].partitions) == 3
    described = result(admin.describe_topics(TopicCollection([topic])))
    assert [len(partition.replicas) for partition in described.partitions] == [1, 1, 1]
    result(admin.delete_topics([topic]))
    assert topic not in admin.list_topics(timeout=10).topics


def test_invalid_topics_are_rejected_with_their_error_code(admin, topic):
    create(admin, topic)
    for new, code in [
        (NewTopic(topic, 1), KafkaError.TOPIC_ALREADY_EXISTS),
        (NewTopic("no/such name", 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic(f"{topic}-b", 1, config={"retention.ms": "x"}), KafkaError.INVALID_CONFIG),
        (NewTopic(f"{topic}-c", 1, config={"cleanup.policy": "shred"}), KafkaError.INVALID_CONFIG),
    ]:
        with pytest.raises(KafkaException) as error:
            result(admin.create_topics([new]))
        assert code_of(error) == code
    with pytest.raises(KafkaException) as error:
        result(admin.delete_topics([f"{topic}-missing"]))
    assert code_of(error) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_validate_only_creates_no_topic(admin, topic):
    result(admin.create_topics([NewTopic(topic, 1)], validate_only=True))
    assert topic not in admin.list_topics(timeout=10).topics


def test_added_partitions_accept_records(admin, broker, wire, topic):
    create(admin, topic, 1)
    result(admin.create_partitions([NewPartitions(topic, 3)]))
    producer = Producer({"bootstrap.servers": broker.address})
    producer.produce(topic, b"in a new one", partition=2)
    assert producer.flush(10) == 0
    assert [record.value for record in wire.read(topic, partition=2)] == [b"in a new one"]
    with pytest.raises(KafkaException) as error:
        result(admin.create_partitions([NewPartitions(topic, 2)]))
    assert code_of(error) == KafkaError.INVALID_PARTITIONS


def test_configs_are_set_changed_and_reset(admin, topic):
    create(admin, topic, retention_ms=60_000)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    assert result(admin.describe_configs([resource]))["retention.ms"].value == "60000"

    change = ConfigEntry("retention.ms", "70000", incremental_operation=AlterConfigOpType.SET)
    result(
        admin.incremental_alter_configs(
            [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])]
        )
    )
    assert result(admin.describe_configs([resource]))["retention.ms"].value == "70000"

    back = ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE)
    result(
        admin.incremental_alter_configs(
            [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[back])]
        )
    )
    assert result(admin.describe_configs([resource]))["retention.ms"].value == "604800000"


def test_lists_are_appended_to_and_subtracted_from(admin, topic):
    create(admin, topic)
    for operation, policies, expected in (
        (AlterConfigOpType.APPEND, "compact", "delete,compact"),
        (AlterConfigOpType.SUBTRACT, "delete", "compact"),
        (AlterConfigOpType.SUBTRACT, "compact", ""),
    ):
        change = ConfigEntry("cleanup.policy", policies, incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
        result(admin.incremental_alter_configs([resource]))
        shown = result(admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))
        assert shown["cleanup.policy"].value == expected


def test_broker_configs_are_described_and_changed(admin):
    cluster = admin.describe_cluster().result(timeout=10)
    name = str(cluster.nodes[0].id)

    def change(operation: AlterConfigOpType, value: str | None) -> str:
        entry = ConfigEntry("offset.metadata.max.bytes", value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.BROKER, name, incremental_configs=[entry])
        result(admin.incremental_alter_configs([resource]))
        described = result(admin.describe_configs([ConfigResource(ResourceType.BROKER, name)]))
        return described["offset.metadata.max.bytes"].value

    assert change(AlterConfigOpType.SET, "100") == "100"
    assert change(AlterConfigOpType.DELETE, None) == "4096"


def test_offsets_are_listed_and_records_deleted(admin, broker, wire, topic):
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(10):
        producer.produce(topic, b"%d" % number, timestamp=1000 + number)
        producer.flush()
    partition = TopicPartition(topic, 0)
    assert result(admin.list_offsets({partition: OffsetSpec.earliest()})).offset == 0
    assert result(admin.list_offsets({partition: OffsetSpec.latest()})).offset == 10
    assert result(admin.list_offsets({partition: OffsetSpec.for_timestamp(1004)})).offset == 4
    assert result(admin.list_offsets({partition: OffsetSpec.max_timestamp()})).offset == 9

    deleted = result(admin.delete_records([TopicPartition(topic, 0, 6)]))
    assert deleted.low_watermark == 6
    assert result(admin.list_offsets({partition: OffsetSpec.earliest()})).offset == 6
    assert wire.fetch(topic, 5).error_code == 1
    assert [record.offset for record in wire.read(topic)] == [6, 7, 8, 9]
