"""ConsumerGroupDescribe: groups of the consumer protocol with their members."""

from itertools import chain

import pytest

from kafscale.broker.security import authorization
from kafscale.metadata.access.model import ResourceType
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from unit.broker.handlers.group_members import GROUP, ConsumerMember, Member, form_generation
from unit.broker.in_memory_broker import run_with_broker

every_version = pytest.mark.parametrize("version", CONSUMER_GROUP_DESCRIBE.versions)


async def describe(broker, version, group_id=GROUP, *, asks=False):
    request = ConsumerGroupDescribeRequest([group_id], asks)
    response = await broker.ask(CONSUMER_GROUP_DESCRIBE, request, version)
    [group] = response.groups
    assert group.group_id == group_id
    return group


def partitions_by_topic(assignment):
    return {
        (topic.topic_id, topic.name): topic.partitions for topic in assignment.assigned_partitions
    }


@every_version
def test_member_has_its_assignment(version):
    async def body(broker):
        topic = await broker.topic("orders", 3)
        member = ConsumerMember(broker, "one", instance_id="desk-1")
        await member.join("orders", "later", rack_id="b", server_assignor="range")
        await member.confirm()
        group = await describe(broker, version)

        assert (group.error_code, group.error_message) == (ErrorCode.NONE, None)
        assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 1, 1)
        assert group.assignor_name == "range"
        [result] = group.members
        assert (result.member_id, result.group_instance_id) == ("one", "desk-1")
        assert (result.rack_id, result.member_epoch) == ("b", 1)
        assert (result.client_id, result.client_host) == ("tester", "/10.0.0.1")
        assert sorted(result.subscribed_topic_names) == ["later", "orders"]
        assert result.subscribed_topic_regex == ""
        everything = {(topic.id, "orders"): [0, 1, 2]}
        assert (
            partitions_by_topic(result.assignment)
            == partitions_by_topic(result.target_assignment)
            == everything
        )
        assert result.member_type == (1 if version >= 1 else -1)

    run_with_broker(body)


@every_version
def test_member_has_current_and_target_assignment(version):
    async def body(broker):
        topic = await broker.topic("orders", 2)
        first, second = ConsumerMember(broker, "a"), ConsumerMember(broker, "b")
        await first.join("orders")
        await first.confirm()
        await second.join("orders")
        group = await describe(broker, version)

        assert (group.group_state, group.group_epoch) == ("Reconciling", 2)
        members = {member.member_id: member for member in group.members}
        assert partitions_by_topic(members["a"].assignment) == {(topic.id, "orders"): [0, 1]}
        assert partitions_by_topic(members["b"].assignment) == {}
        targets = [
            partitions_by_topic(members[name].target_assignment)[topic.id, "orders"]
            for name in "ab"
        ]
        assert sorted(chain(*targets)) == [0, 1]

    run_with_broker(body)


@every_version
@pytest.mark.parametrize(
    ("group_id", "code"),
    [
        ("missing", ErrorCode.GROUP_ID_NOT_FOUND),
        (GROUP, ErrorCode.GROUP_ID_NOT_FOUND),
        ("", ErrorCode.INVALID_GROUP_ID),
    ],
)
def test_other_groups_are_not_found(version, group_id, code):
    async def body(broker):
        await form_generation(Member(broker))
        group = await describe(broker, version, group_id, asks=True)

        assert ErrorCode.of(group.error_code) == code
        assert group.error_message
        assert (group.group_state, group.members) == ("", [])
        assert group.authorized_operations == authorization.OPERATIONS_NOT_REQUESTED

    run_with_broker(body)


@every_version
def test_authorized_operations_are_returned_on_request(version):
    async def body(broker):
        await broker.topic("orders")
        await ConsumerMember(broker, "one").join("orders")
        requested = await describe(broker, version, asks=True)
        unasked = await describe(broker, version)

        assert requested.authorized_operations == authorization.ALL_OPERATIONS[ResourceType.GROUP]
        assert unasked.authorized_operations == authorization.OPERATIONS_NOT_REQUESTED

    run_with_broker(body)


@every_version
def test_deleted_topics_are_left_out(version):
    async def body(broker):
        await broker.topic("orders")
        kept = await broker.topic("payments")
        member = ConsumerMember(broker, "one")
        await member.join("orders", "payments")
        await broker.services.topic_store.delete("orders")
        [result] = (await describe(broker, version)).members

        assert partitions_by_topic(result.assignment) == {(kept.id, "payments"): [0]}

    run_with_broker(body)
