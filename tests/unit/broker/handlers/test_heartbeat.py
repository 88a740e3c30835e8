"""Heartbeat: who is alive, and who has to join again."""

import asyncio

import pytest

from kafscale.broker.handlers import heartbeat
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest, HeartbeatResponse
from unit.broker.group_coordinator.shard_guards import being_loaded
from unit.broker.handlers.membership import GROUP, SESSION_TIMEOUT_MS, Member, settle
from unit.broker.handlers.serving import serve

every_version = pytest.mark.parametrize("version", HEARTBEAT.versions)


@every_version
def test_a_member_stays_as_long_as_it_is_heard_of(version):
    async def body(broker):
        member = await settle(Member(broker))
        for _ in range(4):
            await asyncio.sleep(SESSION_TIMEOUT_MS / 2000)
            assert await member.heartbeat(version) == ErrorCode.NONE
        await asyncio.sleep(SESSION_TIMEOUT_MS / 1000 + 1)
        assert await member.heartbeat(version) == ErrorCode.UNKNOWN_MEMBER_ID

    serve(body)


@every_version
def test_whoever_asks_is_alive_while_the_group_is_being_loaded(version):
    async def body(broker):
        member = await settle(Member(broker))
        async with being_loaded(broker.services.groups, broker.stores.metadata, GROUP):
            assert await member.heartbeat(version) == ErrorCode.NONE
            assert await member.heartbeat(version, generation_id=99) == ErrorCode.NONE
        assert await member.heartbeat(version) == ErrorCode.NONE
        assert await member.heartbeat(version, generation_id=99) == ErrorCode.ILLEGAL_GENERATION

    serve(body)


def test_the_answer_costs_no_task():
    async def body(broker):
        member = await settle(Member(broker))
        answer = heartbeat.handle(
            broker.context(HEARTBEAT, 4),
            HeartbeatRequest(GROUP, member.generation, member.member_id),
        )

        assert answer == HeartbeatResponse()

    serve(body)


@every_version
def test_members_learn_that_another_one_joins(version):
    async def body(broker):
        members = [Member(broker), Member(broker)]
        await settle(*members)
        third = asyncio.create_task(Member(broker).join())
        await asyncio.sleep(1)

        codes = [await member.heartbeat(version) for member in members]
        assert codes == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
        await asyncio.gather(third, *(member.join() for member in members))
        assert {member.generation for member in members} == {2}

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
def test_who_is_not_in_the_generation_is_told_so(version, fields, code):
    async def body(broker):
        member = await settle(Member(broker))

        assert await member.heartbeat(version, **fields) == code

    serve(body)


@pytest.mark.parametrize("version", [3, 4])
def test_a_static_member_whose_place_was_taken_is_fenced(version):
    async def body(broker):
        before = await settle(Member(broker, instance_id="desk-1"))
        await Member(broker, instance_id="desk-1").join()

        assert await before.heartbeat(version) == ErrorCode.FENCED_INSTANCE_ID

    serve(body)
