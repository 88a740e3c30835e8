"""Heartbeat: members of classic groups."""

import asyncio

import pytest

from kafscale.broker.handlers import heartbeat
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest, HeartbeatResponse
from unit.broker.group_coordinator.shard_guards import being_loaded
from unit.broker.handlers.group_members import GROUP, SESSION_TIMEOUT_MS, Member, form_generation
from unit.broker.in_memory_broker import run_with_broker

every_version = pytest.mark.parametrize("version", HEARTBEAT.versions)


@every_version
def test_heartbeats_keep_a_member_alive(version):
    async def body(broker):
        member = await form_generation(Member(broker))
        for _ in range(4):
            await asyncio.sleep(SESSION_TIMEOUT_MS / 2000)
            assert await member.heartbeat(version) == ErrorCode.NONE
        await asyncio.sleep(SESSION_TIMEOUT_MS / 1000 + 1)
        assert await member.heartbeat(version) == ErrorCode.UNKNOWN_MEMBER_ID

    run_with_broker(body)


@every_version
def test_members_count_as_alive_while_the_group_is_loading(version):
    async def body(broker):
        member = await form_generation(Member(broker))
        async with being_loaded(broker.services.shards, broker.stores.metadata, GROUP):
            assert await member.heartbeat(version) == ErrorCode.NONE
            assert await member.heartbeat(version, generation_id=99) == ErrorCode.NONE
        assert await member.heartbeat(version) == ErrorCode.NONE
        assert await member.heartbeat(version, generation_id=99) == ErrorCode.ILLEGAL_GENERATION

    run_with_broker(body)


def test_heartbeat_needs_no_task():
    async def body(broker):
        member = await form_generation(Member(broker))
        response = heartbeat.handle(
            broker.context(HEARTBEAT, 4),
            HeartbeatRequest(GROUP, member.generation, member.member_id),
        )

        assert response == HeartbeatResponse()

    run_with_broker(body)


@every_version
def test_heartbeat_reports_a_rebalance(version):
    async def body(broker):
        members = [Member(broker), Member(broker)]
        await form_generation(*members)
        third = asyncio.create_task(Member(broker).join())
        await asyncio.sleep(1)

        codes = [await member.heartbeat(version) for member in members]
        assert codes == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
        await asyncio.gather(third, *(member.join() for member in members))
        assert {member.generation for member in members} == {2}

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

        assert await member.heartbeat(version, **fields) == code

    run_with_broker(body)


@pytest.mark.parametrize("version", [3, 4])
def test_replaced_static_member_is_fenced(version):
    async def body(broker):
        before = await form_generation(Member(broker, instance_id="desk-1"))
        await Member(broker, instance_id="desk-1").join()

        assert await before.heartbeat(version) == ErrorCode.FENCED_INSTANCE_ID

    run_with_broker(body)
