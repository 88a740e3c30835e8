"""CreateTopics: new topics, and invalid requests."""

import asyncio

import pytest

from kafscale.config import Config
from kafscale.config.sections.broker import Topics
from kafscale.config.sections.s3 import S3
from kafscale.protocol.codec.wire import UUID_ZERO
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreateTopicsRequest,
    PartitionAssignment,
    TopicConfig,
    TopicToCreate,
)
from unit.broker.in_memory_broker import ADMIN_DISABLED, NODE_ID, run_with_broker
from unit.broker.other_brokers import register

OTHER = NODE_ID + 1


def topic_to_create(name="orders", partition_count=2, replication_factor=1, **fields):
    return TopicToCreate(name, partition_count, replication_factor, **fields)


async def create(broker, *topics, version=CREATE_TOPICS.version_max, **fields):
    """The results by name; names must be unique."""
    response = await broker.ask(
        CREATE_TOPICS, CreateTopicsRequest(topics=list(topics), **fields), version
    )
    responses = {topic.name: topic for topic in response.topics}
    assert len(responses) == len(response.topics)
    return responses


def test_assigned_brokers_are_the_first_owners():
    async def body(broker):
        await register(broker, OTHER)
        lists = {1: [NODE_ID, OTHER], 0: [OTHER, NODE_ID], 2: [OTHER, NODE_ID]}
        assignments = [PartitionAssignment(index, brokers) for index, brokers in lists.items()]
        created = (
            await create(broker, topic_to_create("orders", -1, -1, assignments=assignments))
        )["orders"]
        assert (created.error_code, created.partition_count) == (ErrorCode.NONE, 3)
        assert created.replication_factor == 2
        leaders = [broker.services.cluster.leader("orders", index) for index in range(3)]
        assert leaders == [(OTHER, 0), (NODE_ID, 0), (OTHER, 0)], "none of them has moved"

    run_with_broker(body)


def test_assignment_to_draining_brokers_only_is_refused():
    async def body(broker):
        await register(broker, OTHER, is_draining=True)
        assigned = [PartitionAssignment(0, [OTHER])]
        requested = topic_to_create("orders", -1, -1, assignments=assigned)
        refused = (await create(broker, requested))["orders"]
        assert refused.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert refused.error_message == (
            "All brokers specified in the manual partition assignment for partition 0 are fenced"
            " or in controlled shutdown."
        )
        assert broker.services.topic_store.topics == {}

    run_with_broker(body)


@pytest.mark.parametrize("version", CREATE_TOPICS.versions)
def test_topic_exists_when_the_response_is_sent(version):
    async def body(broker):
        retention = TopicConfig("retention.ms", "1000")
        requested = topic_to_create(replication_factor=3, configs=[retention])
        created = (await create(broker, requested, version=version))["orders"]

        topic = broker.services.topic_store.topics["orders"]
        assert (created.error_code, topic.partitions) == (ErrorCode.NONE, 2)
        assert topic.configs == {"retention.ms": "1000"}
        assert broker.log("orders", 1).settings.retention_ms == 1000
        if version >= 5:
            assert (created.partition_count, created.replication_factor) == (2, 1)
            configs = {config.name: config for config in created.configs}
            assert (configs["retention.ms"].value, configs["retention.ms"].source) == ("1000", 1)
            assert configs["segment.ms"].source == 5
        if version >= 7:
            assert created.topic_id == topic.id

    run_with_broker(body)


@pytest.mark.parametrize(
    ("requested", "code"),
    [
        (topic_to_create("or/ders"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic_to_create(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic_to_create("taken"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (topic_to_create("taken", 0), ErrorCode.TOPIC_ALREADY_EXISTS),
        (topic_to_create(partition_count=0), ErrorCode.INVALID_PARTITIONS),
        (topic_to_create(partition_count=-2), ErrorCode.INVALID_PARTITIONS),
        (topic_to_create(replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic_to_create(replication_factor=-2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (
            topic_to_create(
                partition_count=-1, replication_factor=-1, assignments=[PartitionAssignment(0, [9])]
            ),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            topic_to_create(
                partition_count=1, replication_factor=-1, assignments=[PartitionAssignment(0, [7])]
            ),
            ErrorCode.INVALID_REQUEST,
        ),
        (topic_to_create(configs=[TopicConfig("no.such", "1")]), ErrorCode.INVALID_CONFIG),
        (topic_to_create(configs=[TopicConfig("retention.ms", "soon")]), ErrorCode.INVALID_CONFIG),
        (topic_to_create(configs=[TopicConfig("retention.ms", None)]), ErrorCode.INVALID_CONFIG),
        (
            topic_to_create(configs=[TopicConfig("cleanup.policy", "shred")]),
            ErrorCode.INVALID_CONFIG,
        ),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_invalid_topics_fail_and_the_rest_is_created(requested, code, validate_only):
    async def body(broker):
        await broker.topic("taken")
        responses = await create(
            broker, requested, topic_to_create("fine"), validate_only=validate_only
        )

        assert responses[requested.name].error_code == code
        assert responses[requested.name].error_message
        assert responses["fine"].error_code == ErrorCode.NONE
        assert responses["fine"].error_message is None
        assert set(broker.services.topic_store.topics) == {"taken"} | (
            set() if validate_only else {"fine"}
        )

    run_with_broker(body)


def test_validate_only_creates_nothing():
    async def body(broker):
        created = (await create(broker, topic_to_create(), validate_only=True))["orders"]

        assert created.error_code == ErrorCode.NONE
        assert created.topic_id == UUID_ZERO
        assert created.partition_count == 2
        assert not broker.services.topic_store.topics

    run_with_broker(body)


@pytest.mark.parametrize("version", CREATE_TOPICS.versions)
def test_default_partition_count_is_granted_in_all_versions(version):
    """KafkaJS requests it in v3, unless a number is configured."""

    async def body(broker):
        responses = await create(broker, topic_to_create(partition_count=-1), version=version)

        assert responses["orders"].error_code == ErrorCode.NONE
        assert broker.services.topic_store.topics["orders"].partitions == 3

    config = Config(s3=S3(use_memory=True), topics=Topics(auto_create_partitions=3))
    run_with_broker(body, config=config)


def test_duplicate_topic_is_answered_once():
    async def body(broker):
        responses = await create(
            broker, topic_to_create(), topic_to_create(), topic_to_create("other")
        )

        assert responses["orders"].error_code == ErrorCode.INVALID_REQUEST
        assert responses["other"].error_code == ErrorCode.NONE
        assert set(broker.services.topic_store.topics) == {"other"}

    run_with_broker(body)


@pytest.mark.parametrize("counts", [(2**31 - 1, 1), (6_000, 4_001), (10_001, -5)])
def test_too_many_partitions_are_refused_as_a_whole(counts):
    async def body(broker):
        requested = [topic_to_create(f"orders-{count}", count) for count in counts]
        responses = await create(broker, *requested)

        assert [response.error_code for response in responses.values()] == [
            ErrorCode.POLICY_VIOLATION
        ] * 2
        assert not broker.services.topic_store.topics

    run_with_broker(body)


def test_one_of_two_concurrent_creations_succeeds():
    async def body(broker):
        both = await asyncio.gather(
            create(broker, topic_to_create()), create(broker, topic_to_create())
        )

        codes = sorted(responses["orders"].error_code for responses in both)
        assert codes == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]

    run_with_broker(body)


def test_timeout_of_zero_is_raised_to_the_minimum():
    async def body(broker):
        responses = await create(broker, topic_to_create(), timeout_ms=0)
        assert responses["orders"].error_code == ErrorCode.NONE

    run_with_broker(body)


@pytest.mark.parametrize("version", CREATE_TOPICS.versions)
def test_create_topics_is_refused_if_admin_is_disabled(version):
    async def body(broker):
        responses = await create(
            broker, topic_to_create(), topic_to_create("other"), version=version
        )

        assert {response.error_code for response in responses.values()} == {
            ErrorCode.POLICY_VIOLATION
        }
        assert len(responses) == 2

    run_with_broker(body, config=ADMIN_DISABLED)
