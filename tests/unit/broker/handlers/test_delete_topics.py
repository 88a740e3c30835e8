"""DeleteTopics: by name and by id, with all that is in them."""

import asyncio

import pytest

from kafscale.errors import ObjectNotFoundError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    TopicToDelete,
)
from kafscale.testing.faulty_object_store import Fault, Rule
from unit.broker.handlers.serving import WITHOUT_ADMINISTRATION, serve


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
def test_a_topic_goes_and_its_name_is_free(version):
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
        assert not broker.services.catalog.topics
        assert not broker.services.catalog.deletions
        after = await broker.topic("orders")
        assert after.id != before.id
        assert broker.log("orders").end_offset == 0

    serve(body)


def test_the_objects_go_too():
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1000)
        await broker.roll("orders")
        key = "default/orders/0/segment-00000000000000000000.kfs"
        assert await broker.stores.objects.get(key)
        await delete(broker, "orders")
        with pytest.raises(ObjectNotFoundError):
            await broker.stores.objects.get(key)

    serve(body)


def test_a_topic_goes_by_its_id():
    async def body(broker):
        topic = await broker.topic("orders")
        await broker.topic("other")
        [gone, missing] = await delete(
            broker, TopicToDelete(None, topic.id), TopicToDelete(None, b"x" * 16)
        )

        assert (gone.name, gone.topic_id, gone.error_code) == ("orders", topic.id, ErrorCode.NONE)
        assert (missing.name, missing.topic_id) == (None, b"x" * 16)
        assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert set(broker.services.catalog.topics) == {"other"}

    serve(body)


def test_what_names_a_topic_in_no_way_or_in_two_is_refused():
    async def body(broker):
        topic = await broker.topic("orders")
        [neither, both] = await delete(
            broker, TopicToDelete(None), TopicToDelete("orders", topic.id)
        )

        assert neither.error_code == both.error_code == ErrorCode.INVALID_REQUEST
        assert set(broker.services.catalog.topics) == {"orders"}

    serve(body)


def test_a_topic_that_is_named_twice_stays():
    async def body(broker):
        topic = await broker.topic("orders")
        answers = await delete(broker, "orders", TopicToDelete(None, topic.id))

        assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_REQUEST] * 2
        assert set(broker.services.catalog.topics) == {"orders"}

    serve(body)


@pytest.mark.parametrize(("timeout_ms", "waited_seconds"), [(0, 0), (1000, 1), (60_000, 5)])
def test_the_answer_waits_for_the_objects_but_not_for_ever(timeout_ms, waited_seconds):
    async def body(broker):
        await broker.topic("orders")
        stuck = Rule(fault=Fault.REFUSED, operations=frozenset({"list"}), keys="default/orders/*")
        broker.stores.objects.rules.append(stuck)
        started = asyncio.get_running_loop().time()
        [gone] = await delete(broker, "orders", timeout_ms=timeout_ms)

        waited = asyncio.get_running_loop().time() - started
        assert gone.error_code == ErrorCode.NONE
        assert waited == pytest.approx(waited_seconds, abs=0.1)
        assert set(broker.services.catalog.deletions) == {"orders"}

    serve(body)


@pytest.mark.parametrize("version", DELETE_TOPICS.versions)
def test_a_broker_without_administration_refuses(version):
    async def body(broker):
        await broker.topic("orders")
        [refused] = await delete(broker, "orders", version=version)

        assert (refused.name, refused.error_code) == ("orders", ErrorCode.POLICY_VIOLATION)
        assert set(broker.services.catalog.topics) == {"orders"}

    serve(body, config=WITHOUT_ADMINISTRATION)
