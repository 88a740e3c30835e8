"""Resources that a client may not describe are invisible, as if they did not exist."""

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
from unit.broker.handlers import permission_cases_groups, permission_cases_topics
from unit.broker.handlers.authorization_cases import (
    ACLS_ENABLED,
    TOPIC,
    PreparedTopic,
    acl,
    allow,
    client,
    prepare_topic,
)
from unit.broker.handlers.group_members import GROUP, REBALANCE_TIMEOUT_MS, ConsumerMember
from unit.broker.handlers.offset_commits import commit
from unit.broker.in_memory_broker import run_with_broker

HIDDEN = "payroll"

BY_ID_SINCE = {"Produce": 13, "Fetch": 13, "OffsetCommit": 10, "OffsetFetch": 10}
MISSING = Topic(name=TOPIC, id=bytes(15) + b"\1", partitions=1, configs={}, created_ms=0)


def bits(*allowed):
    return sum(1 << operation for operation in allowed)


def by_name():
    for case in [*permission_cases_topics.CASES, *permission_cases_groups.CASES]:
        versions = range(BY_ID_SINCE.get(case.api.name, 100))
        if case.resource_type is ResourceType.TOPIC and case.prepare is None and not case.label:
            for version in set(case.version_numbers) & set(versions):
                yield pytest.param(case, version, id=f"{case}-v{version}")


@pytest.mark.parametrize(("case", "version"), list(by_name()))
def test_denied_responses_do_not_reveal_whether_a_topic_exists(case, version):
    """A client that may use the group, but no topic, names an existing or a missing one."""
    responses = []

    async def ask(broker, here):
        await allow(broker, acl(ResourceType.GROUP, Operation.ALL))
        request = case.request(here, version)
        response = await broker.ask(case.api, request, version, client=client())
        responses.append(msgspec.structs.asdict(response))

    async def with_topic(broker):
        await ask(broker, await prepare_topic(broker))

    async def without_topic(broker):
        await ask(broker, PreparedTopic(MISSING))

    run_with_broker(with_topic, config=ACLS_ENABLED)
    run_with_broker(without_topic, config=ACLS_ENABLED)
    there, not_there = responses
    assert there == not_there


@pytest.mark.parametrize("version", METADATA.versions)
def test_metadata_lists_authorized_topics_only(version):
    async def body(broker):
        await broker.topic(TOPIC)
        await broker.topic(HIDDEN)
        await allow(broker, acl(ResourceType.TOPIC, Operation.READ, TOPIC))
        everything = MetadataRequest(topics=[] if version == 0 else None)
        seen = await broker.ask(METADATA, everything, version, client=client())
        assert [topic.name for topic in seen.topics] == [TOPIC]
        assert broker.services.metrics.access.denied == 0

    run_with_broker(body, config=ACLS_ENABLED)


def test_describe_topic_partitions_lists_authorized_topics_only():
    async def body(broker):
        for name in (TOPIC, HIDDEN):
            await broker.topic(name)
        await allow(broker, acl(ResourceType.TOPIC, Operation.READ, TOPIC))
        request = DescribeTopicPartitionsRequest()
        seen = await broker.ask(DESCRIBE_TOPIC_PARTITIONS, request, client=client())
        assert [topic.name for topic in seen.topics] == [TOPIC]
        [topic] = seen.topics
        assert topic.authorized_operations == bits(Operation.READ, Operation.DESCRIBE)

    run_with_broker(body, config=ACLS_ENABLED)


@pytest.mark.parametrize("version", [*range(2, OFFSET_FETCH.version_max + 1)])
def test_offset_fetch_lists_authorized_topics_only(version):
    async def body(broker):
        for name in (TOPIC, HIDDEN):
            await commit(broker, await broker.topic(name), PartitionToCommit(index=0))
        await allow(
            broker,
            acl(ResourceType.GROUP, Operation.READ),
            acl(ResourceType.TOPIC, Operation.READ, TOPIC),
        )
        groups = [GroupToFetch(group_id=GROUP, topics=None)]
        request = OffsetFetchRequest(group_id=GROUP, topics=None, groups=groups)
        response = await broker.ask(OFFSET_FETCH, request, version, client=client())
        response = response.groups[0] if response.groups else response
        ids = {broker.services.topic_store.topics[name].id: name for name in (TOPIC, HIDDEN)}
        assert [topic.name or ids[topic.topic_id] for topic in response.topics] == [TOPIC]

    run_with_broker(body, config=ACLS_ENABLED)


def test_list_groups_lists_authorized_groups_only():
    async def body(broker):
        topic = await broker.topic(TOPIC)
        for group_id in ("ours", "theirs"):
            await commit(broker, topic, PartitionToCommit(index=0), group_id=group_id)
        await allow(broker, acl(ResourceType.GROUP, Operation.DESCRIBE, "ours"))
        listed = await broker.ask(LIST_GROUPS, ListGroupsRequest(), client=client())
        assert [group.group_id for group in listed.groups] == ["ours"]
        assert broker.services.metrics.access.denied == 0

    run_with_broker(body, config=ACLS_ENABLED)


def test_authorized_operations_are_returned():
    async def body(broker):
        await broker.topic(TOPIC)
        await ConsumerMember(broker, "a-member").join()
        await allow(
            broker,
            acl(ResourceType.TOPIC, Operation.WRITE),
            acl(ResourceType.GROUP, Operation.READ),
            acl(ResourceType.CLUSTER, Operation.DESCRIBE),
        )

        async def ask(api, request, version=None):
            return await broker.ask(api, request, version, client=client())

        response = await ask(
            METADATA,
            MetadataRequest(
                topics=[TopicToDescribe(name=TOPIC)],
                include_topic_authorized_operations=True,
                include_cluster_authorized_operations=True,
            ),
            10,
        )
        assert response.topics[0].authorized_operations == bits(Operation.WRITE, Operation.DESCRIBE)
        assert response.cluster_authorized_operations == bits(Operation.DESCRIBE)
        response = await ask(DESCRIBE_CLUSTER, DescribeClusterRequest(True))
        assert response.cluster_authorized_operations == bits(Operation.DESCRIBE)
        may = bits(Operation.READ, Operation.DESCRIBE)
        response = await ask(DESCRIBE_GROUPS, DescribeGroupsRequest([GROUP], True), 5)
        assert response.groups[0].authorized_operations == may
        response = await ask(CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest([GROUP], True))
        assert response.groups[0].authorized_operations == may
        response = await ask(CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest([GROUP]))
        assert response.groups[0].authorized_operations == authorization.OPERATIONS_NOT_REQUESTED

    run_with_broker(body, config=ACLS_ENABLED)


def test_subscription_regex_matches_authorized_topics_only():
    async def body(broker):
        seen = await broker.topic("orders-eu")
        await broker.topic("orders-secret")
        await allow(
            broker,
            acl(ResourceType.GROUP, Operation.READ),
            acl(ResourceType.TOPIC, Operation.READ, "orders-eu"),
            acl(ResourceType.TOPIC, Operation.READ, "orders-us"),
        )
        member = ConsumerMember(broker, "a-member", client=client())
        await member.join(
            subscribed_topic_names=[],
            subscribed_topic_regex="orders-.*",
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        )
        assert set(member.owned) == {seen.id}

        # One new topic that it may describe, and one that it may not.
        later = await broker.topic("orders-us")
        await broker.topic("orders-hidden")
        for _ in range(3):
            await member.confirm()
        assert set(member.owned) == {seen.id, later.id}

        # An ACL is added, and with it another topic matches.
        await allow(broker, acl(ResourceType.TOPIC, Operation.READ, "orders-hidden"))
        for _ in range(3):
            await member.confirm()
        assert len(member.owned) == 3

    run_with_broker(body, config=ACLS_ENABLED)


def test_group_with_unauthorized_topics_is_not_described():
    async def body(broker):
        await broker.topic(TOPIC)
        await broker.topic(HIDDEN)
        await ConsumerMember(broker, "a-member").join(TOPIC, HIDDEN)
        await allow(
            broker,
            acl(ResourceType.GROUP, Operation.DESCRIBE),
            acl(ResourceType.TOPIC, Operation.DESCRIBE, TOPIC),
        )
        request = ConsumerGroupDescribeRequest([GROUP])
        response = await broker.ask(CONSUMER_GROUP_DESCRIBE, request, client=client())
        [group] = response.groups
        assert group.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert not group.members
        assert HIDDEN not in (group.error_message or "")

    run_with_broker(body, config=ACLS_ENABLED)
