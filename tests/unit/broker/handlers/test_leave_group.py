"""LeaveGroup: one member in old versions, any number in new ones."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, LeavingMember
from unit.broker.handlers.membership import GROUP, Member, settle
from unit.broker.handlers.serving import serve

every_version = pytest.mark.parametrize("version", LEAVE_GROUP.versions)
of_one_member = pytest.mark.parametrize("version", range(3))
of_several_members = pytest.mark.parametrize("version", range(3, LEAVE_GROUP.version_max + 1))


async def leave(broker, version, *members, group_id=GROUP):
    """The error of the whole, and the members with their errors."""
    request = LeaveGroupRequest(
        group_id=group_id,
        member_id=members[0].member_id,
        members=[LeavingMember(each.member_id, each.group_instance_id, "done") for each in members],
    )
    response = await broker.ask(LEAVE_GROUP, request, version)
    told = [
        (each.member_id, each.group_instance_id, ErrorCode.of(each.error_code))
        for each in response.members
    ]
    return ErrorCode.of(response.error_code), told


@every_version
def test_the_others_are_called_to_join_again(version):
    async def body(broker):
        staying, going = Member(broker), Member(broker)
        await settle(staying, going)
        error, told = await leave(broker, version, LeavingMember(going.member_id))

        assert error == ErrorCode.NONE
        assert told == ([(going.member_id, None, ErrorCode.NONE)] if version >= 3 else [])
        assert await going.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
        assert await staying.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS

    serve(body)


@of_one_member
def test_the_only_member_s_error_is_that_of_the_answer(version):
    async def body(broker):
        await settle(Member(broker))
        stranger = LeavingMember("stranger")

        assert await leave(broker, version, stranger) == (ErrorCode.UNKNOWN_MEMBER_ID, [])
        nowhere = await leave(broker, version, stranger, group_id="nobody's")
        assert nowhere == (ErrorCode.UNKNOWN_MEMBER_ID, [])

    serve(body)


@of_several_members
def test_each_member_goes_or_stays_on_its_own(version):
    async def body(broker):
        plain, static = Member(broker), Member(broker, instance_id="desk-1")
        await settle(plain, static)
        error, told = await leave(
            broker,
            version,
            LeavingMember("stranger"),
            LeavingMember("", "desk-9"),
            LeavingMember("other", "desk-1"),
            LeavingMember("", "desk-1"),
            LeavingMember(plain.member_id),
        )

        assert error == ErrorCode.NONE
        assert told == [
            ("stranger", None, ErrorCode.UNKNOWN_MEMBER_ID),
            ("", "desk-9", ErrorCode.UNKNOWN_MEMBER_ID),
            ("other", "desk-1", ErrorCode.FENCED_INSTANCE_ID),
            ("", "desk-1", ErrorCode.NONE),
            (plain.member_id, None, ErrorCode.NONE),
        ]
        assert broker.services.groups.describe(GROUP).state == "Empty"

    serve(body)


@of_several_members
def test_in_a_group_that_nobody_knows_no_member_is_known(version):
    async def body(broker):
        asked = [LeavingMember("stranger"), LeavingMember("", "desk-1")]

        assert await leave(broker, version, *asked, group_id="nobody's") == (
            ErrorCode.NONE,
            [
                ("stranger", None, ErrorCode.UNKNOWN_MEMBER_ID),
                ("", "desk-1", ErrorCode.UNKNOWN_MEMBER_ID),
            ],
        )

    serve(body)


@every_version
def test_a_group_has_a_name(version):
    async def body(broker):
        told = await leave(broker, version, LeavingMember("stranger"), group_id="")

        assert told == (ErrorCode.INVALID_GROUP_ID, [])

    serve(body)
