"""`__consumer_offsets`, as every API shows it: listed, described, read, and otherwise refused."""

import asyncio

import pytest

from kafscale.metadata.schema.model import SHARD_COUNT, SHARDS_TOPIC, shard_of
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
from kafscale.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsRequest,
    PartitionToTrim,
    TopicToTrim,
)
from kafscale.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    TopicToDelete,
)
from kafscale.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    ResourceToDescribe,
)
from kafscale.protocol.messages.describe_topic_partitions import (
    DESCRIBE_TOPIC_PARTITIONS,
    DescribeTopicPartitionsRequest,
)
from kafscale.protocol.messages.fetch import FETCH, FetchRequest, PartitionToFetch, TopicToFetch
from kafscale.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    ConfigToAlter,
    IncrementalAlterConfigsRequest,
    ResourceToAlter,
)
from kafscale.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsRequest,
    PartitionToList,
    TopicToList,
)
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest
from kafscale.protocol.messages.metadata import TopicToDescribe as TopicInMetadata
from kafscale.protocol.messages.offset_commit import PartitionToCommit
from kafscale.protocol.messages.offset_for_leader_epoch import (
    OFFSET_FOR_LEADER_EPOCH,
    EpochOfPartition,
    EpochsOfTopic,
    OffsetForLeaderEpochRequest,
)
from kafscale.protocol.messages.produce import PRODUCE
from kafscale.records import iterate, split
from kafscale.records.message_set import read as read_messages
from services.wire import batch_of, produce_request
from unit.broker.handlers.acl_config import ACLS_ENABLED, ALICE, ROOT
from unit.broker.handlers.group_members import GROUP
from unit.broker.handlers.offset_commits import commit
from unit.broker.in_memory_broker import run_with_broker, running_broker

SHARD = shard_of(GROUP)
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3


async def topics(broker, *names, auto_create=False):
    requested = [TopicInMetadata(name=name) for name in names] or None
    request = MetadataRequest(topics=requested, allow_auto_topic_creation=auto_create)
    return {each.name: each for each in (await broker.ask(METADATA, request)).topics}


async def committed(broker, offset=1, partition=0):
    """A broker with a topic, and a committed offset of it; returns the topic."""
    orders = broker.services.topic_store.get("orders") or await broker.topic("orders", 2)
    assert await commit(broker, orders, PartitionToCommit(partition, offset)) == [0]
    await asyncio.sleep(0.1)
    return orders


async def list_offset(broker, timestamp_ms):
    requested = TopicToList(SHARDS_TOPIC, [PartitionToList(SHARD, timestamp_ms=timestamp_ms)])
    response = await broker.ask(LIST_OFFSETS, ListOffsetsRequest(-1, topics=[requested]), 7)
    return response.topics[0].partitions[0]


async def fetch(broker, offset=0, *, version=11, max_wait_ms=0, topic_id=b"", client=None):
    requested = PartitionToFetch(index=SHARD, offset=offset, max_bytes=2**20)
    topic = TopicToFetch("" if topic_id else SHARDS_TOPIC, partitions=[requested])
    if topic_id:
        topic.topic_id = topic_id
    request = FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=2**20, topics=[topic])
    return (await broker.ask(FETCH, request, version, client=client)).topics[0].partitions[0]


def records(fetched):
    batches = split(b"".join(fetched.records))
    return [record for batch in batches if not batch.is_control for record in iterate(batch)]


def test_topic_exists_from_the_first_group_on_and_keeps_its_id():
    async def body(broker):
        await broker.topic("orders")
        assert list(await topics(broker)) == ["orders"]
        missing = (await topics(broker, SHARDS_TOPIC))[SHARDS_TOPIC]
        assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await committed(broker)

        listed = await topics(broker)
        assert listed.keys() == {"orders", SHARDS_TOPIC}
        assert not listed["orders"].is_internal
        internal = listed[SHARDS_TOPIC]
        assert internal.is_internal
        assert len(internal.partitions) == SHARD_COUNT
        assert {each.leader_id for each in internal.partitions} == {broker.services.node_id}
        response = await broker.ask(DESCRIBE_TOPIC_PARTITIONS, DescribeTopicPartitionsRequest())
        described = {each.name: each for each in response.topics}
        assert described[SHARDS_TOPIC].topic_id == internal.topic_id
        assert [each.is_internal for each in response.topics] == [True, False]
        async with running_broker(broker.stores, node_id=8) as other:
            assert (await topics(other))[SHARDS_TOPIC].topic_id == internal.topic_id

    run_with_broker(body)


def test_client_that_may_create_topics_can_read_it_before_there_are_groups():
    async def body(broker):
        found = (await topics(broker, SHARDS_TOPIC, auto_create=True))[SHARDS_TOPIC]
        assert (found.error_code, found.is_internal) == (0, True)
        latest = (await list_offset(broker, LATEST)).offset
        assert (await fetch(broker, latest)).error_code == 0

    run_with_broker(body)


def test_reader_sees_commits_by_name_and_by_id_and_in_old_formats():
    async def body(broker):
        await committed(broker, 5)
        internal = (await topics(broker))[SHARDS_TOPIC]
        assert (await list_offset(broker, EARLIEST)).offset == 0
        end = (await list_offset(broker, LATEST)).offset
        for version, topic_id in ((11, b""), (13, internal.topic_id)):
            fetched = await fetch(broker, version=version, topic_id=topic_id)
            assert (fetched.error_code, fetched.high_watermark) == (0, end)
            (record,) = records(fetched)
            assert record.key == b"\0\1" + b"\0\7readers" + b"\0\6orders" + bytes(4)
            assert record.value.startswith(b"\0\3" + (5).to_bytes(8))
        for version, magic in ((1, 0), (2, 1)):
            fetched = await fetch(broker, version=version)
            (message, *_) = read_messages(b"".join(fetched.records))
            assert (message.magic, message.record.key) == (magic, record.key)
        found = await list_offset(broker, record.timestamp_ms)
        assert (found.offset, found.timestamp_ms) == (record.offset, record.timestamp_ms)
        assert (await list_offset(broker, MAX_TIMESTAMP)).offset == record.offset
        assert (await list_offset(broker, record.timestamp_ms + 1)).offset == -1

        waiting = asyncio.create_task(fetch(broker, end, max_wait_ms=60_000))
        await asyncio.sleep(1)
        assert not waiting.done()
        await committed(broker, 6)
        (record,) = records(await waiting)
        assert record.value.startswith(b"\0\3" + (6).to_bytes(8))
        assert (await fetch(broker, 2**40)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    run_with_broker(body)


def test_reader_continues_after_a_restart():
    async def body(broker):
        await committed(broker, 1)
        assert (await list_offset(broker, LATEST)).offset > 0
        assert len(records(await fetch(broker))) == 1
        end = (await list_offset(broker, LATEST)).offset
        async with running_broker(broker.stores) as again:
            # A reader that asks for no offsets is refused until the log is open.
            assert (await fetch(again, end)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            await asyncio.sleep(0.1)
            assert (await fetch(again, end)).error_code == 0
            assert (await list_offset(again, LATEST)).offset >= end
            await committed(again, 2, partition=1)
            # The log begins with a control record, in a response of its own.
            fetched = await fetch(again, end)
            assert records(fetched) == []
            offset = split(b"".join(fetched.records))[-1].last_offset + 1
            (newest,) = records(await fetch(again, offset))
            assert newest.value.startswith(b"\0\3" + (2).to_bytes(8))

    run_with_broker(body)


@pytest.mark.parametrize("version", [2, 12])
def test_records_cannot_be_written(version):
    async def body(broker):
        await committed(broker)
        request = produce_request(SHARDS_TOPIC, batch_of([b"value"]), partition=SHARD, acks=-1)
        response = await broker.ask(PRODUCE, request, version)
        refused = response.topics[0].partitions[0]
        assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION

    run_with_broker(body)


def test_topic_cannot_be_changed_or_deleted():
    async def body(broker):
        await committed(broker)
        internal = (await topics(broker))[SHARDS_TOPIC]
        refused = ErrorCode.INVALID_TOPIC_EXCEPTION

        created = await broker.ask(
            CREATE_TOPICS, CreateTopicsRequest([TopicToCreate(SHARDS_TOPIC, 50, 1)])
        )
        assert created.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        for named in (TopicToDelete(SHARDS_TOPIC), TopicToDelete(None, internal.topic_id)):
            deleted = await broker.ask(DELETE_TOPICS, DeleteTopicsRequest([named]))
            assert deleted.topics[0].error_code == refused
        grown = await broker.ask(
            CREATE_PARTITIONS, CreatePartitionsRequest([TopicToGrow(SHARDS_TOPIC, 51)])
        )
        assert grown.topics[0].error_code == refused
        trimmed = await broker.ask(
            DELETE_RECORDS,
            DeleteRecordsRequest([TopicToTrim(SHARDS_TOPIC, [PartitionToTrim(SHARD, 0)])]),
        )
        assert trimmed.topics[0].partitions[0].error_code == refused
        change = ResourceToAlter(2, SHARDS_TOPIC, [ConfigToAlter("retention.ms", 0, "1000")])
        altered = await broker.ask(
            INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest([change])
        )
        assert altered.resources[0].error_code == refused
        described = await broker.ask(
            DESCRIBE_CONFIGS, DescribeConfigsRequest([ResourceToDescribe(2, SHARDS_TOPIC)])
        )
        configs = {each.name: each.value for each in described.resources[0].configs}
        assert configs["cleanup.policy"] == "compact"
        assert (await topics(broker))[SHARDS_TOPIC] == internal

    run_with_broker(body)


def test_reader_needs_the_permission_to_read_it():
    async def body(broker):
        broker.client = ROOT
        await committed(broker)
        topic_id = broker.services.topic_store.find(SHARDS_TOPIC).id
        await list_offset(broker, LATEST)
        for details in ({"version": 11}, {"version": 13, "topic_id": topic_id}):
            assert (await fetch(broker, **details)).error_code == 0
            denied = await fetch(broker, **details, client=ALICE)
            assert denied.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        broker.client = ALICE
        assert await topics(broker) == {}

    run_with_broker(body, config=ACLS_ENABLED)


def test_group_that_reads_it_can_commit_offsets_of_it():
    async def body(broker):
        await committed(broker)
        internal = broker.services.topic_store.find(SHARDS_TOPIC)
        for version in (2, 10):
            assert await commit(broker, internal, PartitionToCommit(3, 77), version=version) == [0]
        async with running_broker(broker.stores) as again:
            offsets = again.services.groups.fetch(GROUP, None, -1)
            assert offsets[SHARDS_TOPIC, 3].offset == 77

    run_with_broker(body)


def test_end_of_the_leader_epoch_is_the_end_of_the_log():
    async def body(broker):
        await committed(broker)
        end = (await list_offset(broker, LATEST)).offset
        epoch = (await topics(broker))[SHARDS_TOPIC].partitions[SHARD].leader_epoch
        asked = EpochsOfTopic(SHARDS_TOPIC, [EpochOfPartition(SHARD, epoch, epoch)])
        request = OffsetForLeaderEpochRequest(-1, [asked])
        response = await broker.ask(OFFSET_FOR_LEADER_EPOCH, request)
        found = response.topics[0].partitions[0]
        assert (found.error_code, found.leader_epoch, found.end_offset) == (0, epoch, end)

    run_with_broker(body)
