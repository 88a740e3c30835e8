"""CreatePartitions: topics grow, and never shrink."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    PartitionAssignment,
    TopicToGrow,
)
from unit.broker.handlers.serving import WITHOUT_ADMINISTRATION, serve


async def grow(broker, *topics, version=CREATE_PARTITIONS.version_max, validate_only=False):
    request = CreatePartitionsRequest(topics=list(topics), validate_only=validate_only)
    response = await broker.ask(CREATE_PARTITIONS, request, version)
    answers = {topic.name: topic for topic in response.topics}
    assert len(answers) == len(response.topics)
    return answers


@pytest.mark.parametrize("version", CREATE_PARTITIONS.versions)
def test_new_partitions_are_empty_and_the_old_ones_stay(version):
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1000)
        grown = (await grow(broker, TopicToGrow("orders", 3, None), version=version))["orders"]

        assert (grown.error_code, grown.error_message) == (ErrorCode.NONE, None)
        assert broker.services.catalog.topics["orders"].partitions == 3
        assert [broker.log("orders", index).end_offset for index in range(3)] == [1, 0, 0]

    serve(body)


@pytest.mark.parametrize(
    ("asked", "code", "message"),
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
            TopicToGrow("orders", 3, [PartitionAssignment([7])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Replicas cannot be assigned",
        ),
        (
            TopicToGrow("orders", 2**31 - 1, None),
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions",
        ),
        (
            TopicToGrow("missing", 3, None),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'missing' does not exist.",
        ),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_what_is_wrong_is_refused(asked, code, message, validate_only):
    async def body(broker):
        await broker.topic("orders", 2)
        refused = (await grow(broker, asked, validate_only=validate_only))[asked.name]

        assert refused.error_code == code
        assert message in refused.error_message
        assert broker.services.catalog.topics["orders"].partitions == 2

    serve(body)


@pytest.mark.parametrize(
    ("added", "code"), [(1, ErrorCode.NONE), (5_001, ErrorCode.POLICY_VIOLATION)]
)
def test_a_request_for_too_many_new_partitions_is_refused_as_a_whole(added, code):
    async def body(broker):
        before = 5_001
        asked = []
        for name in ("orders", "other"):
            await broker.topic(name, before)
            asked.append(TopicToGrow(name, before + added, None))
        answers = await grow(broker, *asked)

        assert [answer.error_code for answer in answers.values()] == [code] * 2
        after = before if code else before + added
        assert broker.services.catalog.topics["orders"].partitions == after

    serve(body)


def test_a_check_changes_nothing():
    async def body(broker):
        await broker.topic("orders")
        answers = await grow(broker, TopicToGrow("orders", 3, None), validate_only=True)

        assert answers["orders"].error_code == ErrorCode.NONE
        assert broker.services.catalog.topics["orders"].partitions == 1

    serve(body)


def test_a_name_that_stands_there_twice_is_answered_once():
    async def body(broker):
        await broker.topic("orders")
        await broker.topic("other")
        answers = await grow(
            broker,
            TopicToGrow("orders", 2, None),
            TopicToGrow("orders", 3, None),
            TopicToGrow("other", 2, None),
        )

        assert answers["orders"].error_code == ErrorCode.INVALID_REQUEST
        assert answers["other"].error_code == ErrorCode.NONE
        assert broker.services.catalog.topics["orders"].partitions == 1

    serve(body)


@pytest.mark.parametrize("version", CREATE_PARTITIONS.versions)
def test_a_broker_without_administration_refuses(version):
    async def body(broker):
        await broker.topic("orders")
        answers = await grow(broker, TopicToGrow("orders", 2, None), version=version)

        assert answers["orders"].error_code == ErrorCode.POLICY_VIOLATION
        assert broker.services.catalog.topics["orders"].partitions == 1

    serve(body, config=WITHOUT_ADMINISTRATION)
