"""What somebody may not see is not there for them, and nothing tells whether it is."""

import msgspec
import pytest

from kafscale.broker.security import authorization
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.schema.model import Topic
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from kafscale.protocol.messages.describe_cluster import DESCRIBE_CLUSTER, DescribeClusterRequest
from kafscale.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from kafscale.protocol.messages.describe_topic_partitions import (
    DESCRIBE_TOPIC_PARTITIONS,
    DescribeTopicPartitionsRequest,
)
from kafscale.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, TopicToDescribe
from kafscale.protocol.messages.offset_commit import PartitionToCommit
from kafscale.protocol.messages.offset_fetch import OFFSET_FETCH, GroupToFetch, OffsetFetchRequest
from unit.broker.handlers import needs_of_groups, needs_of_topics
from unit.broker.handlers.authorized import AUTHORIZED, TOPIC, Scene, allow, client, rule, scene
from unit.broker.handlers.commits import commit
from unit.broker.handlers.membership import GROUP, REBALANCE_TIMEOUT_MS, ConsumerMember
from unit.broker.handlers.serving import serve

HIDDEN = "payroll"

BY_ID_SINCE = {"Produce": 13, "Fetch": 13, "OffsetCommit": 10, "OffsetFetch": 10}
NOWHERE = Topic(name=TOPIC, id=bytes(15) + b"\1", partitions=1, configs={}, created_ms=0)


def bits(*allowed):
    return sum(1 << operation for operation in allowed)


def by_name():
    for case in [*needs_of_topics.CASES, *needs_of_groups.CASES]:
        versions = range(BY_ID_SINCE.get(case.api.name, 100))
        if case.resource_type is ResourceType.TOPIC and case.prepare is None and not case.label:
            for version in set(case.version_numbers) & set(versions):
                yield pytest.param(case, version, id=f"{case}-v{version}")


@pytest.mark.parametrize(("case", "version"), list(by_name()))
def test_nothing_tells_whether_a_topic_exists(case, version):
    """Somebody who may use the group, but no topic, asks for one that is there or is not."""
    answers = []

    async def ask(broker, here):
        await allow(broker, rule(ResourceType.GROUP, Operation.ALL))
        request = case.ask(here, version)
        response = await broker.ask(case.api, request, version, client=client())
        answers.append(msgspec.structs.asdict(response))

    async def with_topic(broker):
        await ask(broker, await scene(broker))

    async def without_topic(broker):
        await ask(broker, Scene(NOWHERE))

    serve(with_topic, config=AUTHORIZED)
    serve(without_topic, config=AUTHORIZED)
    there, not_there = answers
    assert there == not_there


@pytest.mark.parametrize("version", METADATA.versions)
def test_of_all_topics_those_are_told_that_one_may_see(version):
    async def body(broker):
        await broker.topic(TOPIC)
        await broker.topic(HIDDEN)
        await allow(broker, rule(ResourceType.TOPIC, Operation.READ, TOPIC))
        everything = MetadataRequest(topics=[] if version == 0 else None)
        seen = await broker.ask(METADATA, everything, version, client=client())
        assert [topic.name for topic in seen.topics] == [TOPIC]
        assert broker.services.metrics.access.denied == 0

    serve(body, config=AUTHORIZED)


def test_a_page_of_partitions_has_those_that_one_may_see():
    async def body(broker):
        for name in (TOPIC, HIDDEN):
            await broker.topic(name)
        await allow(broker, rule(ResourceType.TOPIC, Operation.READ, TOPIC))
        request = DescribeTopicPartitionsRequest()
        seen = await broker.ask(DESCRIBE_TOPIC_PARTITIONS, request, client=client())
        assert [topic.name for topic in seen.topics] == [TOPIC]
        [topic] = seen.topics
        assert topic.authorized_operations == bits(Operation.READ, Operation.DESCRIBE)

    serve(body, config=AUTHORIZED)


@pytest.mark.parametrize("version", [*range(2, OFFSET_FETCH.version_max + 1)])
def test_of_all_offsets_those_are_told_that_one_may_see(version):
    async def body(broker):
        for name in (TOPIC, HIDDEN):
            await commit(broker, await broker.topic(name), PartitionToCommit(index=0))
        await allow(
            broker,
            rule(ResourceType.GROUP, Operation.READ),
            rule(ResourceType.TOPIC, Operation.READ, TOPIC),
        )
        groups = [GroupToFetch(group_id=GROUP, topics=None)]
        request = OffsetFetchRequest(group_id=GROUP, topics=None, groups=groups)
        response = await broker.ask(OFFSET_FETCH, request, version, client=client())
        told = response.groups[0] if response.groups else response
        ids = {broker.services.catalog.topics[name].id: name for name in (TOPIC, HIDDEN)}
        assert [topic.name or ids[topic.topic_id] for topic in told.topics] == [TOPIC]

    serve(body, config=AUTHORIZED)


def test_of_all_groups_those_are_told_that_one_may_see():
    async def body(broker):
        topic = await broker.topic(TOPIC)
        for group_id in ("ours", "theirs"):
            await commit(broker, topic, PartitionToCommit(index=0), group_id=group_id)
        await allow(broker, rule(ResourceType.GROUP, Operation.DESCRIBE, "ours"))
        listed = await broker.ask(LIST_GROUPS, ListGroupsRequest(), client=client())
        assert [group.group_id for group in listed.groups] == ["ours"]
        assert broker.services.metrics.access.denied == 0

    serve(body, config=AUTHORIZED)


def test_one_is_told_what_one_may_do():
    async def body(broker):
        await broker.topic(TOPIC)
        await ConsumerMember(broker, "a-member").join()
        await allow(
            broker,
            rule(ResourceType.TOPIC, Operation.WRITE),
            rule(ResourceType.GROUP, Operation.READ),
            rule(ResourceType.CLUSTER, Operation.DESCRIBE),
        )

        async def ask(api, request, version=None):
            return await broker.ask(api, request, version, client=client())

        told = await ask(
            METADATA,
            MetadataRequest(
                topics=[TopicToDescribe(name=TOPIC)],
                include_topic_authorized_operations=True,
                include_cluster_authorized_operations=True,
            ),
            10,
        )
        assert told.topics[0].authorized_operations == bits(Operation.WRITE, Operation.DESCRIBE)
        assert told.cluster_authorized_operations == bits(Operation.DESCRIBE)
        told = await ask(DESCRIBE_CLUSTER, DescribeClusterRequest(True))
        assert told.cluster_authorized_operations == bits(Operation.DESCRIBE)
        may = bits(Operation.READ, Operation.DESCRIBE)
        told = await ask(DESCRIBE_GROUPS, DescribeGroupsRequest([GROUP], True), 5)
        assert told.groups[0].authorized_operations == may
        told = await ask(CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest([GROUP], True))
        assert told.groups[0].authorized_operations == may
        told = await ask(CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest([GROUP]))
        assert told.groups[0].authorized_operations == authorization.OPERATIONS_NOT_REQUESTED

    serve(body, config=AUTHORIZED)


def test_a_regular_expression_matches_what_a_member_may_see():
    async def body(broker):
        seen = await broker.topic("orders-eu")
        await broker.topic("orders-secret")
        await allow(
            broker,
            rule(ResourceType.GROUP, Operation.READ),
            rule(ResourceType.TOPIC, Operation.READ, "orders-eu"),
            rule(ResourceType.TOPIC, Operation.READ, "orders-us"),
        )
        member = ConsumerMember(broker, "a-member", client=client())
        await member.join(
            subscribed_topic_names=[],
            subscribed_topic_regex="orders-.*",
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        )
        assert set(member.owned) == {seen.id}

        # One more that it may see and one that it may not: it learns of the first.
        later = await broker.topic("orders-us")
        await broker.topic("orders-hidden")
        for _ in range(3):
            await member.confirm()
        assert set(member.owned) == {seen.id, later.id}

        # A rule comes, and another topic with it.
        await allow(broker, rule(ResourceType.TOPIC, Operation.READ, "orders-hidden"))
        for _ in range(3):
            await member.confirm()
        assert len(member.owned) == 3

    serve(body, config=AUTHORIZED)


def test_a_group_that_reads_secrets_is_not_described():
    async def body(broker):
        await broker.topic(TOPIC)
        await broker.topic(HIDDEN)
        await ConsumerMember(broker, "a-member").join(TOPIC, HIDDEN)
        await allow(
            broker,
            rule(ResourceType.GROUP, Operation.DESCRIBE),
            rule(ResourceType.TOPIC, Operation.DESCRIBE, TOPIC),
        )
        request = ConsumerGroupDescribeRequest([GROUP])
        response = await broker.ask(CONSUMER_GROUP_DESCRIBE, request, client=client())
        [group] = response.groups
        assert group.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert not group.members
        assert HIDDEN not in (group.error_message or "")

    serve(body, config=AUTHORIZED)
