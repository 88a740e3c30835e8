"""OffsetFetch: committed offsets of one or several groups, by name or by id."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.offset_commit import PartitionToCommit
from kafscale.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    GroupToFetch,
    OffsetFetchRequest,
    TopicToFetch,
)
from unit.broker.handlers.group_members import GROUP, ConsumerMember
from unit.broker.handlers.offset_commits import MISSING, commit
from unit.broker.in_memory_broker import run_with_broker

EVERYTHING = None
NOTHING = (-1, -1, "", ErrorCode.NONE)

every_version = pytest.mark.parametrize("version", OFFSET_FETCH.versions)


async def ask(broker, version, topics, *, group_id=GROUP, **member):
    """The result for one group, from the field of the version."""
    request = OffsetFetchRequest(
        group_id=group_id,
        topics=topics,
        groups=[GroupToFetch(group_id=group_id, topics=topics, **member)],
    )
    response = await broker.ask(OFFSET_FETCH, request, version)
    if version < 8:
        return response
    [group] = response.groups
    assert group.group_id == group_id
    return group


def offsets_of(topics, version):
    """Partitions by topic name or id: offset, epoch, metadata and error."""
    return {
        (topic.topic_id if version >= 10 else topic.name, each.index): (
            each.committed_offset,
            each.leader_epoch,
            each.metadata,
            ErrorCode.of(each.error_code),
        )
        for topic in topics
        for each in topic.partitions
    }


def name_or_id(topic, version):
    return topic.id if version >= 10 else topic.name


async def fetch(broker, version, topics, **fields):
    response = await ask(broker, version, topics, **fields)
    assert response.error_code == ErrorCode.NONE
    return offsets_of(response.topics, version)


def topic_to_fetch(topic, *partitions):
    return TopicToFetch(name=topic.name, topic_id=topic.id, partitions=list(partitions))


@every_version
@pytest.mark.parametrize("group_id", [GROUP, ""])
def test_committed_and_missing_offsets(version, group_id):
    async def body(broker):
        orders = await broker.topic("orders", 2)
        empty = await broker.topic("empty")
        partition = PartitionToCommit(1, 17, leader_epoch=3, metadata="note")
        await commit(broker, orders, partition, group_id=group_id)
        fetched = await fetch(
            broker,
            version,
            [topic_to_fetch(orders, 1, 0, 9), topic_to_fetch(empty, 0)],
            group_id=group_id,
        )

        name = name_or_id(orders, version)
        assert fetched == {
            (name, 1): (17, 3 if version >= 5 else -1, "note", ErrorCode.NONE),
            (name, 0): NOTHING,
            (name, 9): NOTHING,
            (name_or_id(empty, version), 0): NOTHING,
        }

    run_with_broker(body)


@every_version
def test_missing_group_has_no_offsets(version):
    async def body(broker):
        orders = await broker.topic("orders")
        fetched = await fetch(broker, version, [topic_to_fetch(orders, 0)], group_id="missing")

        assert fetched == {(name_or_id(orders, version), 0): NOTHING}
        assert not broker.services.groups.list()

    run_with_broker(body)


@every_version
def test_unknown_topic_has_no_offsets(version):
    async def body(broker):
        fetched = await fetch(broker, version, [topic_to_fetch(MISSING, 0, 1)])

        code = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.NONE
        name = name_or_id(MISSING, version)
        assert fetched == {(name, 0): (-1, -1, "", code), (name, 1): (-1, -1, "", code)}

    run_with_broker(body)


@pytest.mark.parametrize("version", range(2, OFFSET_FETCH.version_max + 1))
def test_null_topics_mean_all_offsets(version):
    async def body(broker):
        orders, payments = await broker.topic("orders", 3), await broker.topic("payments")
        await commit(broker, payments, PartitionToCommit(0, 4))
        await commit(broker, orders, PartitionToCommit(2, 6), PartitionToCommit(0, 5))
        response = await ask(broker, version, EVERYTHING)

        assert response.error_code == ErrorCode.NONE
        offsets = {key: values[0] for key, values in offsets_of(response.topics, version).items()}
        name = name_or_id(orders, version)
        assert offsets == {(name, 0): 5, (name, 2): 6, (name_or_id(payments, version), 0): 4}
        assert len(response.topics) == 2
        assert await fetch(broker, version, EVERYTHING, group_id="missing") == {}
        assert await fetch(broker, version, []) == {}

    run_with_broker(body)


@pytest.mark.parametrize("version", [8, 9, 10])
def test_several_groups_in_one_request(version):
    async def body(broker):
        orders = await broker.topic("orders")
        await commit(broker, orders, PartitionToCommit(0, 1), group_id="a")
        await commit(broker, orders, PartitionToCommit(0, 2), group_id="b")
        groups = [
            GroupToFetch(group_id="b", topics=EVERYTHING),
            GroupToFetch(group_id="a", topics=[topic_to_fetch(orders, 0)]),
            GroupToFetch(group_id="c", topics=[topic_to_fetch(orders, 0)]),
        ]
        response = await broker.ask(OFFSET_FETCH, OffsetFetchRequest(groups=groups), version)

        groups = [(group.group_id, group.error_code) for group in response.groups]
        assert groups == [("b", 0), ("a", 0), ("c", 0)]
        offsets = [
            offsets_of(group.topics, version)[name_or_id(orders, version), 0][0]
            for group in response.groups
        ]
        assert offsets == [2, 1, -1]

    run_with_broker(body)


@every_version
def test_recreated_topic_has_no_offsets(version):
    async def body(broker):
        before = await broker.topic("orders")
        await commit(broker, before, PartitionToCommit(0, 17))
        await broker.services.topic_store.delete("orders")
        gone = await fetch(broker, version, [topic_to_fetch(before, 0)])
        after = await broker.topic("orders")

        assert gone[name_or_id(before, version), 0][0] == -1
        fetched = await fetch(broker, version, [topic_to_fetch(after, 0)])
        assert fetched == {(name_or_id(after, version), 0): NOTHING}
        if version >= 2:
            assert await fetch(broker, version, EVERYTHING) == {}

    run_with_broker(body)


@pytest.mark.parametrize("version", [9, 10])
@pytest.mark.parametrize(
    ("member", "code"),
    [
        ({"member_id": "one", "member_epoch": 1}, ErrorCode.NONE),
        ({"member_id": None, "member_epoch": -1}, ErrorCode.NONE),
        ({"member_id": "one", "member_epoch": 9}, ErrorCode.STALE_MEMBER_EPOCH),
        ({"member_id": "unknown-member", "member_epoch": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_consumer_member_epoch_is_checked(version, member, code):
    async def body(broker):
        orders = await broker.topic("orders")
        one = ConsumerMember(broker, "one")
        await one.join("orders")
        assert one.epoch == 1
        response = await ask(broker, version, [topic_to_fetch(orders, 0)], **member)

        assert ErrorCode.of(response.error_code) == code
        assert bool(response.topics) == (code == ErrorCode.NONE)

    run_with_broker(body)


@every_version
def test_moved_group_is_an_error_of_the_group_and_of_each_partition(version):
    async def body(broker):
        orders = await broker.topic("orders")
        broker.services.groups.shut_down()
        response = await ask(broker, version, [topic_to_fetch(orders, 0)])

        code = ErrorCode.NOT_COORDINATOR
        name = name_or_id(orders, version)
        assert offsets_of(response.topics, version) == {(name, 0): (-1, -1, "", code)}
        assert response.error_code == (code if version >= 2 else ErrorCode.NONE)

    run_with_broker(body)
