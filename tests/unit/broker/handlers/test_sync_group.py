"""SyncGroup: the leader's assignments reach every member."""

import asyncio

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.sync_group import SYNC_GROUP
from unit.broker.group_coordinator.shard_guards import being_loaded
from unit.broker.handlers.group_members import GROUP, Member, form_generation
from unit.broker.in_memory_broker import run_with_broker

every_version = pytest.mark.parametrize("version", SYNC_GROUP.versions)


@every_version
def test_each_member_gets_its_assignment_unchanged(version):
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
        protocol = ("consumer", "range") if version >= 5 else (None, None)
        assert {(each.protocol_type, each.protocol_name) for each in synced} == {protocol}

    run_with_broker(body)


@every_version
def test_repeated_sync_returns_the_same_assignment(version):
    async def body(broker):
        member = await form_generation(Member(broker))
        again = await member.sync(version=version)

        assert again.assignment == member.member_id.encode()

    run_with_broker(body)


@every_version
def test_members_have_to_rejoin_while_the_group_is_loading(version):
    async def body(broker):
        member = await form_generation(Member(broker))
        async with being_loaded(broker.services.shards, broker.stores.metadata, GROUP):
            response = await member.sync(version=version)

        assert ErrorCode.of(response.error_code) == ErrorCode.REBALANCE_IN_PROGRESS

    run_with_broker(body)


@every_version
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"group_id": "missing"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "unknown-member"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 7}, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_unknown_member_or_generation_is_refused(version, fields, code):
    async def body(broker):
        member = await form_generation(Member(broker))
        response = await member.sync(version=version, **fields)

        assert ErrorCode.of(response.error_code) == code
        assert (response.protocol_type, response.protocol_name) == (None, None)
        assert response.assignment == b""

    run_with_broker(body)


@pytest.mark.parametrize(
    "fields",
    [
        {"protocol_type": None},
        {"protocol_name": None},
        {"protocol_type": "connect"},
        {"protocol_name": "sticky"},
    ],
)
def test_v5_checks_the_protocol(fields):
    async def body(broker):
        member = await form_generation(Member(broker))

        response = await member.sync(version=5, **fields)
        assert response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert (await member.sync(version=4, **fields)).error_code == ErrorCode.NONE

    run_with_broker(body)
