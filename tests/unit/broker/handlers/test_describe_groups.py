"""DescribeGroups: classic groups with their members."""

import asyncio

import pytest

from kafscale.broker.security import authorization
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from unit.broker.handlers.membership import GROUP, ConsumerMember, Member, settle
from unit.broker.handlers.serving import serve

every_version = pytest.mark.parametrize("version", DESCRIBE_GROUPS.versions)


async def describe(broker, version, group_id=GROUP, *, asks=False):
    request = DescribeGroupsRequest([group_id], asks)
    response = await broker.ask(DESCRIBE_GROUPS, request, version)
    [group] = response.groups
    assert group.group_id == group_id
    return group


@every_version
def test_a_stable_group_is_told_with_everything(version):
    async def body(broker):
        static = Member(broker, instance_id="desk-1", metadata=b"\xffmine")
        plain = Member(broker, metadata=b"\x00ours")
        await settle(static, plain)
        group = await describe(broker, version)

        assert (group.error_code, group.error_message) == (ErrorCode.NONE, None)
        assert (group.group_state, group.protocol_type) == ("Stable", "consumer")
        assert group.protocol_name == "range"
        told = {member.member_id: member for member in group.members}
        assert told.keys() == {static.member_id, plain.member_id}
        for member in (static, plain):
            found = told[member.member_id]
            assert (found.client_id, found.client_host) == ("tester", "/10.0.0.1")
            assert found.group_instance_id == (member.instance_id if version >= 4 else None)
            assert (found.metadata, found.assignment) == (
                member.metadata,
                member.member_id.encode(),
            )

    serve(body)


@every_version
def test_while_members_gather_no_protocol_is_told(version):
    async def body(broker):
        member = await settle(Member(broker))
        other = asyncio.create_task(Member(broker).join())
        await asyncio.sleep(1)
        group = await describe(broker, version)

        assert (group.group_state, group.protocol_type) == ("PreparingRebalance", "consumer")
        assert group.protocol_name == ""
        assert len(group.members) == 2
        assert {each.metadata for each in group.members} == {b""}
        await asyncio.gather(other, member.join())

    serve(body)


@every_version
def test_a_group_that_is_empty_is_told(version):
    async def body(broker):
        member = await settle(Member(broker))
        await member.leave()
        group = await describe(broker, version)

        assert (group.error_code, group.group_state) == (ErrorCode.NONE, "Empty")
        assert (group.protocol_name, group.members) == ("", [])

    serve(body)


@every_version
@pytest.mark.parametrize("group_id", ["nobody's", GROUP, ""])
def test_what_is_no_classic_group_is_dead(version, group_id):
    async def body(broker):
        await broker.topic("orders")
        await ConsumerMember(broker, "one").join("orders")
        group = await describe(broker, version, group_id)

        assert (group.group_state, group.members) == ("Dead", [])
        assert group.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)
        assert bool(group.error_message) == (version >= 6)

    serve(body)


@pytest.mark.parametrize("version", range(3, DESCRIBE_GROUPS.version_max + 1))
def test_what_may_be_done_is_told_to_who_asks(version):
    async def body(broker):
        await settle(Member(broker))
        asked = await describe(broker, version, asks=True)
        unasked = await describe(broker, version)

        assert (
            asked.authorized_operations
            == authorization.ALL_GROUP_OPERATIONS
            == 1 << 3 | 1 << 6 | 1 << 8
        )
        assert unasked.authorized_operations == authorization.OPERATIONS_NOT_REQUESTED

    serve(body)


@every_version
def test_each_group_is_answered_in_its_place(version):
    async def body(broker):
        await settle(Member(broker))
        request = DescribeGroupsRequest(["nobody's", GROUP, GROUP])
        response = await broker.ask(DESCRIBE_GROUPS, request, version)

        told = [(group.group_id, group.group_state) for group in response.groups]
        assert told == [("nobody's", "Dead"), (GROUP, "Stable"), (GROUP, "Stable")]

    serve(body)


@every_version
def test_a_broker_that_stops_says_so_for_each_group(version):
    async def body(broker):
        broker.services.groups.shut_down()
        group = await describe(broker, version)

        assert (group.error_code, group.group_state) == (ErrorCode.NOT_COORDINATOR, "")

    serve(body)
