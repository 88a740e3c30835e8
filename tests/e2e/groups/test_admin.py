"""Groups through the admin clients of librdkafka and kafka-python."""

import pytest
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient

from services.group_member import Client
from services.wire import Wire

from .conftest import PARTITIONS, fill

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def admin(server) -> AdminClient:
    return AdminClient({"bootstrap.servers": server.address})


@pytest.mark.parametrize("kind", [ConsumerGroupType.CLASSIC, ConsumerGroupType.CONSUMER])
def test_description_equals_the_view_of_the_members(server, create_group, admin, kind):
    is_classic = kind is ConsumerGroupType.CLASSIC
    consumers = create_group(server, Client("librdkafka", "range" if is_classic else "consumer"))
    consumers.start_members(2)
    consumers.wait_until_stable()
    stable = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}, types={kind}).result(10)
    assert stable.errors == []
    assert consumers.group in {each.group_id for each in stable.valid}
    described = admin.describe_consumer_groups([consumers.group])[consumers.group].result(10)
    assert described.state is ConsumerGroupState.STABLE
    assert described.type is kind
    assert described.partition_assignor == ("range" if is_classic else "uniform")
    owned = [
        {each.partition for each in member.assignment.topic_partitions}
        for member in described.members
    ]
    assert sorted(map(sorted, owned)) == sorted(
        sorted(member.owned) for member in consumers.members
    )
    with pytest.raises(KafkaException) as refused:
        admin.delete_consumer_groups([consumers.group])[consumers.group].result(10)
    assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP


def test_offsets_are_altered_listed_and_deleted(server, topic, group, admin):
    with Wire(server.port) as wire:
        wire.create(topic, PARTITIONS)
    partitions = [TopicPartition(topic, number, 100 + number) for number in range(PARTITIONS)]
    desired = ConsumerGroupTopicPartitions(group, partitions)
    altered = admin.alter_consumer_group_offsets([desired])[group].result(10)
    assert {each.error for each in altered.topic_partitions} == {None}
    all_offsets = ConsumerGroupTopicPartitions(group)
    listed = admin.list_consumer_group_offsets([all_offsets])[group].result(10)
    assert {each.partition: each.offset for each in listed.topic_partitions} == {
        each.partition: each.offset for each in partitions
    }
    admin.delete_consumer_groups([group])[group].result(10)
    with pytest.raises(KafkaException) as unknown:
        admin.delete_consumer_groups([group])[group].result(10)
    assert unknown.value.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND


def test_empty_group_is_listed_until_deleted(server, create_group, topic):
    consumers = create_group(server, Client("librdkafka", "range"))
    consumers.start_members()
    consumers.wait_until_stable()
    fill(server, topic, [b"record"])
    consumers.wait_until_caught_up({0: 1})
    consumers.stop_all()
    admin = KafkaAdminClient(bootstrap_servers=server.address)
    try:
        listed = {each["group_id"]: each["group_state"] for each in admin.list_groups()}
        assert listed[consumers.group] == "Empty"
        offsets = admin.list_group_offsets(consumers.group)[consumers.group]
        assert {partition.partition: each.offset for partition, each in offsets.items()} == {0: 1}
        admin.delete_groups([consumers.group])
        assert consumers.group not in {each["group_id"] for each in admin.list_groups()}
    finally:
        admin.close()
