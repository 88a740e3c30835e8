"""The mutation quota (KIP-599) of all handlers that create or delete partitions."""

import asyncio

import pytest

from kafscale.metadata.access.model import QuotaEntity
from kafscale.protocol.error_codes import ErrorCode
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
from kafscale.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    TopicToDelete,
)
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, TopicToDescribe
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProduceRequest,
    TopicToProduce,
)
from kafscale.records import Record, build
from unit.broker.in_memory_broker import run_with_broker

NOBODYS = QuotaEntity(user="ANONYMOUS")
DEBT_MS = 9_000


def create(name, partition_count=1, *, validate_only=False):
    topic = TopicToCreate(name, partition_count, replication_factor=-1)
    return CreateTopicsRequest([topic], timeout_ms=10_000, validate_only=validate_only)


async def go_into_debt(broker):
    """Exceed a quota of one partition per second by nine, by creating a topic."""
    await broker.services.access_store.alter_quota(NOBODYS, {"controller_mutation_rate": 1.0})
    created = await broker.ask(CREATE_TOPICS, create("orders", 20))
    assert created.topics[0].error_code == ErrorCode.NONE
    assert created.throttle_time_ms == 0


CHANGES = [
    pytest.param(
        CREATE_TOPICS,
        6,
        create("payments"),
        lambda broker: "payments" in broker.services.topic_store.topics,
        id="CreateTopics",
    ),
    pytest.param(
        CREATE_PARTITIONS,
        3,
        CreatePartitionsRequest(topics=[TopicToGrow("orders", 21, None)], timeout_ms=10_000),
        lambda broker: broker.services.topic_store.topics["orders"].partitions == 21,
        id="CreatePartitions",
    ),
    pytest.param(
        DELETE_TOPICS,
        5,
        DeleteTopicsRequest([TopicToDelete("orders")], topic_names=["orders"], timeout_ms=0),
        lambda broker: "orders" not in broker.services.topic_store.topics,
        id="DeleteTopics",
    ),
]


@pytest.mark.parametrize(("api", "refused_since", "request_", "is_done"), CHANGES)
def test_exceeded_quota_refuses_until_it_recovers(api, refused_since, request_, is_done):
    async def body(broker):
        await go_into_debt(broker)
        for version in range(refused_since, api.version_max + 1):
            response = await broker.ask(api, request_, version)
            assert response.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            assert DEBT_MS - 1000 < response.throttle_time_ms <= DEBT_MS
        assert not is_done(broker)

        await asyncio.sleep(DEBT_MS / 1000)
        response = await broker.ask(api, request_)
        assert (response.topics[0].error_code, response.throttle_time_ms) == (ErrorCode.NONE, 0)
        assert is_done(broker)

    run_with_broker(body)


@pytest.mark.parametrize(("api", "refused_since", "request_", "is_done"), CHANGES)
def test_old_versions_are_throttled_instead_of_refused(api, refused_since, request_, is_done):
    async def body(broker):
        await go_into_debt(broker)
        response = await broker.ask(api, request_, refused_since - 1)
        assert response.topics[0].error_code == ErrorCode.NONE
        assert response.throttle_time_ms > DEBT_MS - 1000
        assert is_done(broker)

    run_with_broker(body)


def test_validate_only_is_not_charged():
    async def body(broker):
        await broker.services.access_store.alter_quota(NOBODYS, {"controller_mutation_rate": 1.0})
        for _ in range(5):
            checked = await broker.ask(CREATE_TOPICS, create("orders", 20, validate_only=True))
            assert checked.topics[0].error_code == ErrorCode.NONE

    run_with_broker(body)


def test_auto_creation_is_charged():
    async def body(broker):
        await go_into_debt(broker)
        request = MetadataRequest([TopicToDescribe(name="payments")])
        described = await broker.ask(METADATA, request)
        assert described.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

        records = memoryview(build([Record(0, 0, None, b"value")]))
        sent = ProduceRequest(
            acks=1,
            timeout_ms=10_000,
            topics=[
                TopicToProduce("payments", partitions=[PartitionToProduce(0, records)]),
                TopicToProduce("orders", partitions=[PartitionToProduce(0, records)]),
            ],
        )
        produced = await broker.ask(PRODUCE, sent, 9)
        codes = {each.name: each.partitions[0].error_code for each in produced.topics}
        assert codes == {"payments": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "orders": ErrorCode.NONE}
        assert "payments" not in broker.services.topic_store.topics

        await asyncio.sleep(DEBT_MS / 1000)
        described = await broker.ask(METADATA, request)
        assert described.topics[0].error_code == ErrorCode.NONE

    run_with_broker(body)
