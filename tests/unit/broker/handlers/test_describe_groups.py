"""DescribeGroups: classic groups with their members."""

import asyncio

import pytest

from kafscale.broker.security import authorization
from kafscale.metadata.access.model import ResourceType
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from unit.broker.handlers.group_members import GROUP, ConsumerMember, Member, form_generation
from unit.broker.in_memory_broker import run_with_broker

every_version = pytest.mark.parametrize("version", DESCRIBE_GROUPS.versions)


async def describe(broker, version, group_id=GROUP, *, asks=False):
    request = DescribeGroupsRequest([group_id], asks)
    response = await broker.ask(DESCRIBE_GROUPS, request, version)
    [group] = response.groups
    assert group.group_id == group_id
    return group


@every_version
def test_stable_group_is_described_completely(version):
    async def body(broker):
        static = Member(broker, instance_id="desk-1", metadata=b"\xffmine")
        plain = Member(broker, metadata=b"\x00ours")
        await form_generation(static, plain)
        group = await describe(broker, version)

        assert (group.error_code, group.error_message) == (ErrorCode.NONE, None)
        assert (group.group_state, group.protocol_type) == ("Stable", "consumer")
        assert group.protocol_name == "range"
        members = {member.member_id: member for member in group.members}
        assert members.keys() == {static.member_id, plain.member_id}
        for member in (static, plain):
            result = members[member.member_id]
            assert (result.client_id, result.client_host) == ("tester", "/10.0.0.1")
            assert result.group_instance_id == (member.instance_id if version >= 4 else None)
            assert (result.metadata, result.assignment) == (
                member.metadata,
                member.member_id.encode(),
            )

    run_with_broker(body)


@every_version
def test_rebalancing_group_has_no_protocol(version):
    async def body(broker):
        member = await form_generation(Member(broker))
        other = asyncio.create_task(Member(broker).join())
        await asyncio.sleep(1)
        group = await describe(broker, version)

        assert (group.group_state, group.protocol_type) == ("PreparingRebalance", "consumer")
        assert group.protocol_name == ""
        assert len(group.members) == 2
        assert {each.metadata for each in group.members} == {b""}
        await asyncio.gather(other, member.join())

    run_with_broker(body)


@every_version
def test_empty_group_is_described(version):
    async def body(broker):
        member = await form_generation(Member(broker))
        await member.leave()
        group = await describe(broker, version)

        assert (group.error_code, group.group_state) == (ErrorCode.NONE, "Empty")
        assert (group.protocol_name, group.members) == ("", [])

    run_with_broker(body)


@every_version
@pytest.mark.parametrize("group_id", ["missing", GROUP, ""])
def test_other_groups_are_dead(version, group_id):
    async def body(broker):
        await broker.topic("orders")
        await ConsumerMember(broker, "one").join("orders")
        group = await describe(broker, version, group_id)

        assert (group.group_state, group.members) == ("Dead", [])
        assert group.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)
        assert bool(group.error_message) == (version >= 6)

    run_with_broker(body)


@pytest.mark.parametrize("version", range(3, DESCRIBE_GROUPS.version_max + 1))
def test_authorized_operations_are_returned_on_request(version):
    async def body(broker):
        await form_generation(Member(broker))
        requested = await describe(broker, version, asks=True)
        unasked = await describe(broker, version)

        assert (
            requested.authorized_operations
            == authorization.ALL_OPERATIONS[ResourceType.GROUP]
            == 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
        )
        assert unasked.authorized_operations == authorization.OPERATIONS_NOT_REQUESTED

    run_with_broker(body)


@every_version
def test_groups_are_answered_in_request_order(version):
    async def body(broker):
        await form_generation(Member(broker))
        request = DescribeGroupsRequest(["missing", GROUP, GROUP])
        response = await broker.ask(DESCRIBE_GROUPS, request, version)

        states = [(group.group_id, group.group_state) for group in response.groups]
        assert states == [("missing", "Dead"), (GROUP, "Stable"), (GROUP, "Stable")]

    run_with_broker(body)


@every_version
def test_stopping_broker_returns_an_error_for_each_group(version):
    async def body(broker):
        broker.services.groups.shut_down()
        group = await describe(broker, version)

        assert (group.error_code, group.group_state) == (ErrorCode.NOT_COORDINATOR, "")

    run_with_broker(body)
