"""JoinGroup: members of one generation, in every version."""

import asyncio
import re

import pytest

from kafscale.broker.handlers import join_group
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.join_group import JOIN_GROUP, JoinGroupRequest, OfferedProtocol
from unit.broker.handlers.group_members import GROUP, SESSION_TIMEOUT_MS, Member, form_generation
from unit.broker.in_memory_broker import run_with_broker

UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"

every_version = pytest.mark.parametrize("version", JOIN_GROUP.versions)
since_static_members = pytest.mark.parametrize("version", range(5, JOIN_GROUP.version_max + 1))


@every_version
def test_members_join_one_generation(version):
    async def body(broker):
        members = [Member(broker, metadata=b"\x00first"), Member(broker, metadata=b"\xffsecond")]
        joined = await asyncio.gather(*(member.join(version) for member in members))

        wishes = {member.member_id: member.metadata for member in members}
        assert len(wishes) == 2
        for member, response in zip(members, joined, strict=True):
            assert (response.generation_id, response.protocol_name) == (1, "range")
            assert response.protocol_type == ("consumer" if version >= 7 else None)
            assert not response.skip_assignment
            assert response.leader in wishes
            shown = {each.member_id: each.metadata for each in response.members}
            assert shown == (wishes if member.leads else {})
        assert sum(member.leads for member in members) == 1

    run_with_broker(body)


@every_version
def test_member_id_begins_with_the_client_id(version):
    async def body(broker):
        member = Member(broker)
        first = await member.send_join(version)

        assert re.fullmatch(f"tester-{UUID}", first.member_id)
        if version < 4:
            assert first.error_code == ErrorCode.NONE
            return
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert (first.generation_id, first.leader, first.members) == (-1, "", [])
        second = await member.send_join(version)
        assert (second.error_code, second.member_id) == (ErrorCode.NONE, first.member_id)

    run_with_broker(body)


@since_static_members
def test_static_member_joins_at_once_with_its_instance_id(version):
    async def body(broker):
        member = Member(broker, instance_id="desk-1")
        response = await member.send_join(version)

        assert response.error_code == ErrorCode.NONE
        assert re.fullmatch(f"desk-1-{UUID}", response.member_id)
        assert [each.group_instance_id for each in response.members] == ["desk-1"]

    run_with_broker(body)


@since_static_members
def test_static_leader_that_rejoins_skips_the_assignment(version):
    async def body(broker):
        await form_generation(Member(broker, instance_id="desk-1"))
        again = Member(broker, instance_id="desk-1")
        response = await again.join(version)

        assert response.generation_id == 1
        assert response.skip_assignment == (version >= 9)
        assert again.leads == (version >= 9)
        assert (await again.sync()).assignment.startswith(b"desk-1-")

    run_with_broker(body)


def test_member_has_its_client_and_timeouts():
    async def body(broker):
        member = Member(broker)
        await member.join()

        [result] = broker.services.groups.describe(GROUP).members.values()
        assert (result.client_id, result.client_host) == ("tester", "/10.0.0.1")
        assert (result.session_timeout_ms, result.rebalance_timeout_ms) == (10_000, 60_000)

    run_with_broker(body)


@pytest.mark.parametrize("version", [0, 1])
def test_rebalance_timeout_defaults_to_the_session_timeout(version):
    async def body(broker):
        await Member(broker).join(version, rebalance_timeout_ms=-1)

        [result] = broker.services.groups.describe(GROUP).members.values()
        assert result.rebalance_timeout_ms == SESSION_TIMEOUT_MS

    run_with_broker(body)


@pytest.mark.parametrize("name", [None, ""])
def test_member_id_without_a_client_id(name):
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

    run_with_broker(body)


@every_version
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"member_id": "unknown-member"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"session_timeout_ms": 5}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_invalid_join_is_refused(version, fields, code):
    async def body(broker):
        response = await Member(broker).send_join(version, **fields)

        assert ErrorCode.of(response.error_code) == code
        assert response.member_id == fields.get("member_id", "")
        assert (response.generation_id, response.leader, response.members) == (-1, "", [])
        assert response.protocol_type is None
        assert response.protocol_name == (None if version >= 7 else "")

    run_with_broker(body)


def test_inconsistent_protocol_is_refused():
    async def body(broker):
        await form_generation(Member(broker))
        other = [OfferedProtocol("sticky")]
        response = await Member(broker).send_join(3, protocols=other)

        assert response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    run_with_broker(body)
