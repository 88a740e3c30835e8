"""JoinGroup: one generation for all who join, in every version."""

import asyncio
import re

import pytest

from kafscale.broker.handlers import join_group
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.join_group import JOIN_GROUP, JoinGroupRequest, OfferedProtocol
from unit.broker.handlers.membership import GROUP, SESSION_TIMEOUT_MS, Member, settle
from unit.broker.handlers.serving import serve

UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"

every_version = pytest.mark.parametrize("version", JOIN_GROUP.versions)
since_static_members = pytest.mark.parametrize("version", range(5, JOIN_GROUP.version_max + 1))


@every_version
def test_members_begin_a_generation_together(version):
    async def body(broker):
        members = [Member(broker, metadata=b"\x00first"), Member(broker, metadata=b"\xffsecond")]
        joined = await asyncio.gather(*(member.join(version) for member in members))

        wishes = {member.member_id: member.metadata for member in members}
        assert len(wishes) == 2
        for member, answer in zip(members, joined, strict=True):
            assert (answer.generation_id, answer.protocol_name) == (1, "range")
            assert answer.protocol_type == ("consumer" if version >= 7 else None)
            assert not answer.skip_assignment
            assert answer.leader in wishes
            shown = {each.member_id: each.metadata for each in answer.members}
            assert shown == (wishes if member.leads else {})
        assert sum(member.leads for member in members) == 1

    serve(body)


@every_version
def test_a_new_member_is_given_an_id_with_the_name_of_its_client(version):
    async def body(broker):
        member = Member(broker)
        first = await member.ask_to_join(version)

        assert re.fullmatch(f"tester-{UUID}", first.member_id)
        if version < 4:
            assert first.error_code == ErrorCode.NONE
            return
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert (first.generation_id, first.leader, first.members) == (-1, "", [])
        second = await member.ask_to_join(version)
        assert (second.error_code, second.member_id) == (ErrorCode.NONE, first.member_id)

    serve(body)


@since_static_members
def test_a_static_member_joins_at_once_and_goes_by_its_instance(version):
    async def body(broker):
        member = Member(broker, instance_id="desk-1")
        answer = await member.ask_to_join(version)

        assert answer.error_code == ErrorCode.NONE
        assert re.fullmatch(f"desk-1-{UUID}", answer.member_id)
        assert [each.group_instance_id for each in answer.members] == ["desk-1"]

    serve(body)


@since_static_members
def test_a_static_leader_that_comes_back_keeps_the_assignment(version):
    async def body(broker):
        await settle(Member(broker, instance_id="desk-1"))
        again = Member(broker, instance_id="desk-1")
        answer = await again.join(version)

        assert answer.generation_id == 1
        assert answer.skip_assignment == (version >= 9)
        assert again.leads == (version >= 9)
        assert (await again.sync()).assignment.startswith(b"desk-1-")

    serve(body)


def test_a_member_is_known_with_its_client_and_its_timeouts():
    async def body(broker):
        member = Member(broker)
        await member.join()

        [found] = broker.services.groups.describe(GROUP).members.values()
        assert (found.client_id, found.client_host) == ("tester", "/10.0.0.1")
        assert (found.session_timeout_ms, found.rebalance_timeout_ms) == (10_000, 60_000)

    serve(body)


@pytest.mark.parametrize("version", [0, 1])
def test_without_a_rebalance_timeout_it_is_that_of_the_session(version):
    async def body(broker):
        await Member(broker).join(version, rebalance_timeout_ms=-1)

        [found] = broker.services.groups.describe(GROUP).members.values()
        assert found.rebalance_timeout_ms == SESSION_TIMEOUT_MS

    serve(body)


@pytest.mark.parametrize("name", [None, ""])
def test_a_client_without_a_name_gets_an_id_all_the_same(name):
    async def body(broker):
        context = broker.context(JOIN_GROUP, 4)
        context.client_id = name
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            protocol_type="consumer",
            protocols=[OfferedProtocol("range")],
        )
        with pytest.raises(Exception, match="join again") as caught:
            join_group.handle(context, request)
        refused = join_group.error_response(context, request, caught.value)

        assert re.fullmatch(f"-{UUID}", refused.member_id)

    serve(body)


@every_version
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"session_timeout_ms": 5}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_who_may_not_join_is_told_why(version, fields, code):
    async def body(broker):
        answer = await Member(broker).ask_to_join(version, **fields)

        assert ErrorCode.of(answer.error_code) == code
        assert answer.member_id == fields.get("member_id", "")
        assert (answer.generation_id, answer.leader, answer.members) == (-1, "", [])
        assert answer.protocol_type is None
        assert answer.protocol_name == (None if version >= 7 else "")

    serve(body)


def test_what_nobody_else_offers_is_refused():
    async def body(broker):
        await settle(Member(broker))
        other = [OfferedProtocol("sticky")]
        answer = await Member(broker).ask_to_join(3, protocols=other)

        assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    serve(body)
