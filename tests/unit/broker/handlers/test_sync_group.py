"""SyncGroup: the leader's bytes reach every member, and nothing else does."""

import asyncio

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.sync_group import SYNC_GROUP
from unit.broker.group_coordinator.shard_guards import being_loaded
from unit.broker.handlers.membership import GROUP, Member, settle
from unit.broker.handlers.serving import serve

every_version = pytest.mark.parametrize("version", SYNC_GROUP.versions)


@every_version
def test_each_member_gets_its_share_untouched(version):
    async def body(broker):
        members = [Member(broker) for _ in range(3)]
        await asyncio.gather(*(member.join() for member in members))
        members.sort(key=lambda member: member.leads)
        shares = {member.member_id: bytes([n, 0, 255]) for n, member in enumerate(members)}
        waiting = [
            asyncio.create_task(member.sync(version=version))
            for member in members
            if not member.leads
        ]
        await asyncio.sleep(1)
        assert not any(each.done() for each in waiting)
        synced = [await members[-1].sync(shares, version), *[await each for each in waiting]]

        assert [each.error_code for each in synced] == [ErrorCode.NONE] * 3
        assert [each.assignment for each in synced] == [b"\2\0\xff", b"\0\0\xff", b"\1\0\xff"]
        told = ("consumer", "range") if version >= 5 else (None, None)
        assert {(each.protocol_type, each.protocol_name) for each in synced} == {told}

    serve(body)


@every_version
def test_a_member_that_asks_again_gets_the_same_again(version):
    async def body(broker):
        member = await settle(Member(broker))
        again = await member.sync(version=version)

        assert again.assignment == member.member_id.encode()

    serve(body)


@every_version
def test_members_are_to_join_again_while_the_group_is_being_loaded(version):
    async def body(broker):
        member = await settle(Member(broker))
        async with being_loaded(broker.services.groups, broker.stores.metadata, GROUP):
            answer = await member.sync(version=version)

        assert ErrorCode.of(answer.error_code) == ErrorCode.REBALANCE_IN_PROGRESS

    serve(body)


@every_version
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"group_id": "nobody's"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 7}, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_who_is_not_in_the_generation_gets_nothing(version, fields, code):
    async def body(broker):
        member = await settle(Member(broker))
        answer = await member.sync(version=version, **fields)

        assert ErrorCode.of(answer.error_code) == code
        assert (answer.protocol_type, answer.protocol_name) == (None, None)
        assert answer.assignment == b""

    serve(body)


@pytest.mark.parametrize(
    "fields",
    [
        {"protocol_type": None},
        {"protocol_name": None},
        {"protocol_type": "connect"},
        {"protocol_name": "sticky"},
    ],
)
def test_since_v5_both_sides_have_to_mean_the_same_protocol(fields):
    async def body(broker):
        member = await settle(Member(broker))

        answer = await member.sync(version=5, **fields)
        assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert (await member.sync(version=4, **fields)).error_code == ErrorCode.NONE

    serve(body)
