"""LeaveGroup: one member in old versions, any number in new ones."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, LeavingMember
from unit.broker.handlers.group_members import GROUP, Member, form_generation
from unit.broker.in_memory_broker import run_with_broker

every_version = pytest.mark.parametrize("version", LEAVE_GROUP.versions)
of_one_member = pytest.mark.parametrize("version", range(3))
of_several_members = pytest.mark.parametrize("version", range(3, LEAVE_GROUP.version_max + 1))


async def leave(broker, version, *members, group_id=GROUP):
    """The top-level error, and the members with their errors."""
    request = LeaveGroupRequest(
        group_id=group_id,
        member_id=members[0].member_id,
        members=[LeavingMember(each.member_id, each.group_instance_id, "done") for each in members],
    )
    response = await broker.ask(LEAVE_GROUP, request, version)
    results = [
        (each.member_id, each.group_instance_id, ErrorCode.of(each.error_code))
        for each in response.members
    ]
    return ErrorCode.of(response.error_code), results


@every_version
def test_other_members_have_to_rejoin(version):
    async def body(broker):
        staying, going = Member(broker), Member(broker)
        await form_generation(staying, going)
        error, members = await leave(broker, version, LeavingMember(going.member_id))

        assert error == ErrorCode.NONE
        assert members == ([(going.member_id, None, ErrorCode.NONE)] if version >= 3 else [])
        assert await going.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
        assert await staying.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS

    run_with_broker(body)


@of_one_member
def test_single_member_error_is_the_top_level_error(version):
    async def body(broker):
        await form_generation(Member(broker))
        unknown = LeavingMember("unknown-member")

        assert await leave(broker, version, unknown) == (ErrorCode.UNKNOWN_MEMBER_ID, [])
        nowhere = await leave(broker, version, unknown, group_id="missing")
        assert nowhere == (ErrorCode.UNKNOWN_MEMBER_ID, [])

    run_with_broker(body)


@of_several_members
def test_each_member_succeeds_or_fails_on_its_own(version):
    async def body(broker):
        plain, static = Member(broker), Member(broker, instance_id="desk-1")
        await form_generation(plain, static)
        error, members = await leave(
            broker,
            version,
            LeavingMember("unknown-member"),
            LeavingMember("", "desk-9"),
            LeavingMember("other", "desk-1"),
            LeavingMember("", "desk-1"),
            LeavingMember(plain.member_id),
        )

        assert error == ErrorCode.NONE
        assert members == [
            ("unknown-member", None, ErrorCode.UNKNOWN_MEMBER_ID),
            ("", "desk-9", ErrorCode.UNKNOWN_MEMBER_ID),
            ("other", "desk-1", ErrorCode.FENCED_INSTANCE_ID),
            ("", "desk-1", ErrorCode.NONE),
            (plain.member_id, None, ErrorCode.NONE),
        ]
        assert broker.services.groups.describe(GROUP).state == "Empty"

    run_with_broker(body)


@of_several_members
def test_members_of_a_missing_group_are_unknown(version):
    async def body(broker):
        requested = [LeavingMember("unknown-member"), LeavingMember("", "desk-1")]

        assert await leave(broker, version, *requested, group_id="missing") == (
            ErrorCode.NONE,
            [
                ("unknown-member", None, ErrorCode.UNKNOWN_MEMBER_ID),
                ("", "desk-1", ErrorCode.UNKNOWN_MEMBER_ID),
            ],
        )

    run_with_broker(body)


@every_version
def test_empty_group_id_is_refused(version):
    async def body(broker):
        response = await leave(broker, version, LeavingMember("unknown-member"), group_id="")

        assert response == (ErrorCode.INVALID_GROUP_ID, [])

    run_with_broker(body)
