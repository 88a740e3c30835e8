"""CreatePartitions: topics get more partitions, never fewer."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    PartitionAssignment,
    TopicToGrow,
)
from unit.broker.in_memory_broker import ADMIN_DISABLED, NODE_ID, run_with_broker
from unit.broker.other_brokers import register

OTHER = NODE_ID + 1


async def grow(broker, *topics, version=CREATE_PARTITIONS.version_max, validate_only=False):
    request = CreatePartitionsRequest(topics=list(topics), validate_only=validate_only)
    response = await broker.ask(CREATE_PARTITIONS, request, version)
    responses = {topic.name: topic for topic in response.topics}
    assert len(responses) == len(response.topics)
    return responses


@pytest.mark.parametrize("version", CREATE_PARTITIONS.versions)
def test_new_partitions_are_empty_and_old_ones_unchanged(version):
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1000)
        grown = (await grow(broker, TopicToGrow("orders", 3, None), version=version))["orders"]

        assert (grown.error_code, grown.error_message) == (ErrorCode.NONE, None)
        assert broker.services.topic_store.topics["orders"].partitions == 3
        assert [broker.log("orders", index).end_offset for index in range(3)] == [1, 0, 0]

    run_with_broker(body)


def test_assigned_brokers_own_the_new_partitions():
    async def body(broker):
        await broker.topic("orders")
        await register(broker, OTHER)
        assigned = [PartitionAssignment([OTHER]), PartitionAssignment([NODE_ID])]
        grown = (await grow(broker, TopicToGrow("orders", 3, assigned)))["orders"]
        assert (grown.error_code, grown.error_message) == (ErrorCode.NONE, None)
        leaders = [broker.services.cluster.leader("orders", index) for index in (1, 2)]
        assert leaders == [(OTHER, 0), (NODE_ID, 0)]
        assert broker.services.topic_store.topics["orders"].replicas == {1: (OTHER,), 2: (NODE_ID,)}

    run_with_broker(body)


@pytest.mark.parametrize(
    ("requested", "code", "message"),
    [
        (
            TopicToGrow("orders", 2, None),
            ErrorCode.INVALID_PARTITIONS,
            "Topic already has 2 partition(s).",
        ),
        (
            TopicToGrow("orders", 1, None),
            ErrorCode.INVALID_PARTITIONS,
            "The topic orders currently has 2 partition(s); 1 would not be an increase.",
        ),
        (TopicToGrow("orders", -1, None), ErrorCode.INVALID_PARTITIONS, "not be an increase"),
        (
            TopicToGrow("orders", 3, [PartitionAssignment([9])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "no such broker is registered",
        ),
        (
            TopicToGrow("orders", 2**31 - 1, None),
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions",
        ),
        (
            TopicToGrow("missing", 3, None),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        ),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_invalid_request_is_refused(requested, code, message, validate_only):
    async def body(broker):
        await broker.topic("orders", 2)
        refused = (await grow(broker, requested, validate_only=validate_only))[requested.name]

        assert refused.error_code == code
        assert message in refused.error_message
        assert broker.services.topic_store.topics["orders"].partitions == 2

    run_with_broker(body)


@pytest.mark.parametrize(
    ("added", "code"), [(1, ErrorCode.NONE), (5_001, ErrorCode.POLICY_VIOLATION)]
)
def test_too_many_new_partitions_are_refused_as_a_whole(added, code):
    async def body(broker):
        before = 5_001
        requests = []
        for name in ("orders", "other"):
            await broker.topic(name, before)
            requests.append(TopicToGrow(name, before + added, None))
        responses = await grow(broker, *requests)

        assert [response.error_code for response in responses.values()] == [code] * 2
        after = before if code else before + added
        assert broker.services.topic_store.topics["orders"].partitions == after

    run_with_broker(body)


def test_validate_only_changes_nothing():
    async def body(broker):
        await broker.topic("orders")
        responses = await grow(broker, TopicToGrow("orders", 3, None), validate_only=True)

        assert responses["orders"].error_code == ErrorCode.NONE
        assert broker.services.topic_store.topics["orders"].partitions == 1

    run_with_broker(body)


def test_duplicate_topic_is_answered_once():
    async def body(broker):
        await broker.topic("orders")
        await broker.topic("other")
        responses = await grow(
            broker,
            TopicToGrow("orders", 2, None),
            TopicToGrow("orders", 3, None),
            TopicToGrow("other", 2, None),
        )

        assert responses["orders"].error_code == ErrorCode.INVALID_REQUEST
        assert responses["other"].error_code == ErrorCode.NONE
        assert broker.services.topic_store.topics["orders"].partitions == 1

    run_with_broker(body)


@pytest.mark.parametrize("version", CREATE_PARTITIONS.versions)
def test_create_partitions_is_refused_if_admin_is_disabled(version):
    async def body(broker):
        await broker.topic("orders")
        responses = await grow(broker, TopicToGrow("orders", 2, None), version=version)

        assert responses["orders"].error_code == ErrorCode.POLICY_VIOLATION
        assert broker.services.topic_store.topics["orders"].partitions == 1

    run_with_broker(body, config=ADMIN_DISABLED)
