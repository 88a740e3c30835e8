"""DescribeTopicPartitions: every partition once, on any number of pages."""

import pytest

from kafscale.broker.handlers.describe_topic_partitions import PARTITIONS_COUNT_MAX
from kafscale.broker.security.authorization import ALL_OPERATIONS
from kafscale.metadata.access.model import ResourceType
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_topic_partitions import (
    DESCRIBE_TOPIC_PARTITIONS,
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicToDescribe,
)
from unit.broker.in_memory_broker import NODE_ID, run_with_broker


async def describe(broker, *names, limit=2000, cursor=None):
    request = DescribeTopicPartitionsRequest(
        [TopicToDescribe(name) for name in names], limit, cursor
    )
    return await broker.ask(DESCRIBE_TOPIC_PARTITIONS, request)


def places(response):
    return [(topic.name, each.index) for topic in response.topics for each in topic.partitions]


def test_topic_has_all_its_partitions():
    async def body(broker):
        created = await broker.topic("orders", 2)
        response = await describe(broker, "orders")

        [topic] = response.topics
        assert (topic.name, topic.topic_id, topic.error_code) == (
            "orders",
            created.id,
            ErrorCode.NONE,
        )
        assert topic.authorized_operations == ALL_OPERATIONS[ResourceType.TOPIC]
        assert response.next_cursor is None
        [first, second] = topic.partitions
        assert (first.index, second.index) == (0, 1)
        assert first.leader_id == NODE_ID
        assert first.leader_epoch == broker.log("orders").leader_epoch
        assert first.replicas == first.in_sync_replicas == [NODE_ID]
        assert first.eligible_leader_replicas == first.offline_replicas == []

    run_with_broker(body)


def test_all_topics_are_sorted_by_name():
    async def body(broker):
        assert places(await describe(broker)) == []
        for name in ("b", "c", "a"):
            await broker.topic(name)
        assert places(await describe(broker)) == [("a", 0), ("b", 0), ("c", 0)]
        assert places(await describe(broker, "c", "a", "c")) == [("a", 0), ("c", 0)]

    run_with_broker(body)


@pytest.mark.parametrize("limit", [-1, 0, 1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("names", [(), ("a", "b", "c")])
def test_pages_are_contiguous(limit, names):
    async def body(broker):
        for name, count in (("a", 2), ("b", 1), ("c", 3)):
            await broker.topic(name, count)
        result, cursor = [], None
        while True:
            page = await describe(broker, *names, limit=limit, cursor=cursor)
            assert 1 <= len(places(page)) <= max(limit, 1)
            result += places(page)
            cursor = page.next_cursor
            if cursor is None:
                break

        assert result == [("a", 0), ("a", 1), ("b", 0), ("c", 0), ("c", 1), ("c", 2)]

    run_with_broker(body)


def test_page_size_is_limited():
    async def body(broker):
        await broker.topic("orders", PARTITIONS_COUNT_MAX + 1)
        page = await describe(broker, limit=2**31 - 1)

        assert len(places(page)) == PARTITIONS_COUNT_MAX
        assert page.next_cursor == Cursor("orders", PARTITIONS_COUNT_MAX)

    run_with_broker(body)


def test_cursor_may_name_a_deleted_topic():
    async def body(broker):
        await broker.topic("a")
        await broker.topic("c")

        assert places(await describe(broker, cursor=Cursor("b", 5))) == [("c", 0)]
        requested = await describe(broker, "b", "c", cursor=Cursor("b", 5))
        assert [(topic.name, topic.error_code) for topic in requested.topics] == [
            ("b", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("c", ErrorCode.NONE),
        ]

    run_with_broker(body)


def test_missing_topics_are_not_auto_created():
    async def body(broker):
        response = await describe(broker, "missing", "or/ders")

        assert [(topic.name, topic.error_code) for topic in response.topics] == [
            ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("or/ders", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ]
        assert not broker.services.topic_store.topics

    run_with_broker(body)


def test_negative_cursor_is_refused():
    async def body(broker):
        await broker.topic("orders")
        response = await describe(broker, "orders", cursor=Cursor("orders", -1))
        assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST]

        # Without a named topic, the response has no field for the error.
        request = DescribeTopicPartitionsRequest(cursor=Cursor("orders", -1))
        await broker.ask(DESCRIBE_TOPIC_PARTITIONS, request, is_closed=True)

    run_with_broker(body)
