"""OffsetDelete: deleted offsets, and groups in use."""

import pytest

from kafscale.groups.consumer_protocol import Subscription, encode_subscription
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.offset_commit import PartitionToCommit
from kafscale.protocol.messages.offset_delete import (
    OFFSET_DELETE,
    OffsetDeleteRequest,
    PartitionToDelete,
    TopicToDelete,
)
from unit.broker.handlers.group_members import GROUP, ConsumerMember, Member, form_generation
from unit.broker.handlers.offset_commits import commit
from unit.broker.in_memory_broker import run_with_broker


async def delete(broker, *places, group_id=GROUP):
    """The top-level error, and those of the partitions."""
    topics = [TopicToDelete(name, [PartitionToDelete(index)]) for name, index in places]
    response = await broker.ask(OFFSET_DELETE, OffsetDeleteRequest(group_id, topics))
    errors = {
        (topic.name, each.index): ErrorCode.of(each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }
    return ErrorCode.of(response.error_code), errors


def committed(broker):
    return set(broker.services.groups.fetch(GROUP, None, -1))


def test_offsets_are_deleted_one_by_one():
    async def body(broker):
        orders = await broker.topic("orders", 3)
        await commit(broker, orders, PartitionToCommit(0, 5), PartitionToCommit(1, 6))
        places = [("orders", 0), ("orders", 2), ("orders", 3), ("missing", 0)]

        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await delete(broker, *places) == (
            ErrorCode.NONE,
            {
                ("orders", 0): ErrorCode.NONE,
                ("orders", 2): ErrorCode.NONE,
                ("orders", 3): unknown,
                ("missing", 0): unknown,
            },
        )
        assert committed(broker) == {("orders", 1)}

    run_with_broker(body)


def test_group_with_other_members_keeps_its_offsets():
    """Only the members know which topics they read."""

    async def body(broker):
        await broker.topic("orders")
        worker = Member(broker)
        response = await worker.send_join(version=3, protocol_type="connect")
        assert response.error_code == ErrorCode.NONE
        assert await delete(broker, ("orders", 0)) == (ErrorCode.NON_EMPTY_GROUP, {})

    run_with_broker(body)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_subscribed_topics_keep_their_offsets(protocol):
    async def body(broker):
        orders, old = await broker.topic("orders"), await broker.topic("old")
        for topic in (orders, old):
            await commit(broker, topic, PartitionToCommit(0, 5))
        if protocol == "classic":
            wishes = encode_subscription(Subscription(topics=("orders",)))
            await form_generation(Member(broker, metadata=wishes))
        else:
            await ConsumerMember(broker, "one").join("orders")

        assert await delete(broker, ("orders", 0), ("old", 0)) == (
            ErrorCode.NONE,
            {("orders", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ("old", 0): ErrorCode.NONE},
        )
        assert committed(broker) == {("orders", 0)}

    run_with_broker(body)


@pytest.mark.parametrize(
    ("group_id", "code"),
    [("", ErrorCode.INVALID_GROUP_ID), ("missing", ErrorCode.GROUP_ID_NOT_FOUND)],
)
@pytest.mark.parametrize("topic", ["orders", "missing"])
def test_group_error_has_no_partitions(group_id, code, topic):
    async def body(broker):
        await broker.topic("orders")

        assert await delete(broker, (topic, 0), group_id=group_id) == (code, {})

    run_with_broker(body)
