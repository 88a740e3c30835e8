"""DeleteTopics: by name and by id, with their objects."""

import asyncio

import pytest

from doubles.faulty_object_store import Fault, Rule
from kafscale.errors import ObjectNotFoundError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    TopicToDelete,
)
from unit.broker.in_memory_broker import ADMIN_DISABLED, run_with_broker


async def delete(broker, *topics, version=DELETE_TOPICS.version_max, timeout_ms=10_000):
    if version < 6:
        request = DeleteTopicsRequest(topic_names=list(topics), timeout_ms=timeout_ms)
    else:
        named = [TopicToDelete(name) if isinstance(name, str) else name for name in topics]
        request = DeleteTopicsRequest(topics=named, timeout_ms=timeout_ms)
    response = await broker.ask(DELETE_TOPICS, request, version)
    assert len(response.topics) == len(topics)
    return response.topics


@pytest.mark.parametrize("version", DELETE_TOPICS.versions)
def test_deleted_name_can_be_reused(version):
    async def body(broker):
        before = await broker.topic("orders")
        await broker.write("orders", 1000)
        await broker.roll("orders")
        [gone, missing] = await delete(broker, "orders", "missing", version=version)

        assert (gone.name, gone.error_code) == ("orders", ErrorCode.NONE)
        assert gone.topic_id == (before.id if version >= 6 else bytes(16))
        assert (missing.name, missing.error_code) == (
            "missing",
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        )
        assert bool(missing.error_message) == (version >= 5)
        assert not broker.services.topic_store.topics
        assert not broker.services.topic_store.deletions
        after = await broker.topic("orders")
        assert after.id != before.id
        assert broker.log("orders").end_offset == 0

    run_with_broker(body)


def test_objects_are_deleted():
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1000)
        await broker.roll("orders")
        key = "default/orders/0/segment-00000000000000000000.kfs"
        assert await broker.stores.objects.get(key)
        await delete(broker, "orders")
        with pytest.raises(ObjectNotFoundError):
            await broker.stores.objects.get(key)

    run_with_broker(body)


def test_topic_is_deleted_by_id():
    async def body(broker):
        topic = await broker.topic("orders")
        await broker.topic("other")
        [gone, missing] = await delete(
            broker, TopicToDelete(None, topic.id), TopicToDelete(None, b"x" * 16)
        )

        assert (gone.name, gone.topic_id, gone.error_code) == ("orders", topic.id, ErrorCode.NONE)
        assert (missing.name, missing.topic_id) == (None, b"x" * 16)
        assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert set(broker.services.topic_store.topics) == {"other"}

    run_with_broker(body)


def test_topic_without_or_with_two_identifiers_is_refused():
    async def body(broker):
        topic = await broker.topic("orders")
        [neither, both] = await delete(
            broker, TopicToDelete(None), TopicToDelete("orders", topic.id)
        )

        assert neither.error_code == both.error_code == ErrorCode.INVALID_REQUEST
        assert set(broker.services.topic_store.topics) == {"orders"}

    run_with_broker(body)


def test_duplicate_topic_is_refused():
    async def body(broker):
        topic = await broker.topic("orders")
        by_id = TopicToDelete(None, topic.id)
        for duplicates in (["orders", by_id], ["orders", "orders"], [by_id, by_id]):
            request = DeleteTopicsRequest(
                [TopicToDelete(each) if each == "orders" else each for each in duplicates]
            )
            response = await broker.ask(DELETE_TOPICS, request, 6)
            [refused] = response.topics
            assert refused.error_code == ErrorCode.INVALID_REQUEST
        assert set(broker.services.topic_store.topics) == {"orders"}

    run_with_broker(body)


@pytest.mark.parametrize(("timeout_ms", "waited_seconds"), [(0, 0), (1000, 1), (60_000, 5)])
def test_response_waits_for_objects_up_to_the_limit(timeout_ms, waited_seconds):
    async def body(broker):
        await broker.topic("orders")
        stuck = Rule(fault=Fault.REFUSED, operations=frozenset({"list"}), keys="default/orders/*")
        broker.stores.objects.rules.append(stuck)
        started = asyncio.get_running_loop().time()
        [gone] = await delete(broker, "orders", timeout_ms=timeout_ms)

        waited = asyncio.get_running_loop().time() - started
        assert gone.error_code == ErrorCode.NONE
        assert waited == pytest.approx(waited_seconds, abs=0.1)
        assert set(broker.services.topic_store.deletions) == {"orders"}

    run_with_broker(body)


@pytest.mark.parametrize("version", DELETE_TOPICS.versions)
def test_delete_topics_is_refused_if_admin_is_disabled(version):
    async def body(broker):
        await broker.topic("orders")
        [refused] = await delete(broker, "orders", version=version)

        assert (refused.name, refused.error_code) == ("orders", ErrorCode.POLICY_VIOLATION)
        assert set(broker.services.topic_store.topics) == {"orders"}

    run_with_broker(body, config=ADMIN_DISABLED)
