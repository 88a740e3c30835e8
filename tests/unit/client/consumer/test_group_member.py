"""A group member with a scripted coordinator."""

import asyncio

import pytest

from kafscale.client.consumer.group_member import ROUNDS_COUNT_MAX, Member
from kafscale.client.errors import BrokerResponseError
from kafscale.config import Config
from kafscale.groups.assignors import Assignor
from kafscale.groups.consumer_protocol import (
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.heartbeat import HeartbeatResponse
from kafscale.protocol.messages.join_group import JoinedMember, JoinGroupResponse
from kafscale.protocol.messages.leave_group import LeaveGroupResponse
from kafscale.protocol.messages.offset_commit import (
    CommittedPartition,
    CommittedTopic,
    OffsetCommitResponse,
)
from kafscale.protocol.messages.sync_group import SyncGroupResponse
from unit.cli.scripted_coordinator import ScriptedCoordinator

SETTINGS = Config().consumer
ORDERS = encode_subscription(Subscription(("orders",)))


def joined(member_id="me", leader="other", **fields):
    return JoinGroupResponse(generation_id=7, member_id=member_id, leader=leader, **fields)


def synced(**assignment):
    return SyncGroupResponse(assignment=encode_assignment(assignment))


def error_response(response, code):
    return response(error_code=code)


def member_of(coordinator, counts=(), assignor=Assignor.RANGE):
    responses = iter(counts)

    async def count_partitions(topics):
        return {topic: count for topic, count in next(responses).items() if topic in topics}

    return Member(coordinator, ["orders"], SETTINGS, count_partitions, assignor)


def test_member_joins_with_the_assigned_id():
    """KIP-394: the first response is an error with a member id."""
    coordinator = ScriptedCoordinator(
        JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="me"),
        joined(),
        synced(orders=[2, 0]),
    )
    member = member_of(coordinator)
    assert asyncio.run(member.join()) == [("orders", 0), ("orders", 2)]
    first, second, sync = coordinator.requests
    assert (first.member_id, second.member_id, sync.member_id) == ("", "me", "me")
    assert (second.session_timeout_ms, second.rebalance_timeout_ms) == (30_000, 60_000)
    assert [each.name for each in second.protocols] == ["range"]
    assert (sync.generation_id, sync.assignments) == (7, [])
    assert member.is_in_group


@pytest.mark.parametrize(
    ("assignor", "mine"),
    [(Assignor.RANGE, {"orders": (0, 1)}), (Assignor.ROUND_ROBIN, {"orders": (0, 2)})],
)
def test_leader_assigns_partitions(assignor, mine):
    members = [JoinedMember("me", None, ORDERS), JoinedMember("other", None, ORDERS)]
    coordinator = ScriptedCoordinator(joined(leader="me", members=members), synced(orders=[0, 1]))
    asyncio.run(member_of(coordinator, [{"orders": 3}], assignor).join())
    assigned = {
        each.member_id: decode_assignment(each.assignment)
        for each in coordinator.requests[-1].assignments
    }
    (rest,) = {0, 1, 2} - set(mine["orders"])
    assert assigned == {"me": mine, "other": {"orders": (rest,)}}


def test_leader_skips_the_assignment_on_request():
    """KIP-814: a static leader rejoins."""
    members = [JoinedMember("me", None, ORDERS)]
    coordinator = ScriptedCoordinator(
        joined(leader="me", members=members, skip_assignment=True), synced(orders=[0])
    )
    asyncio.run(member_of(coordinator, [{"orders": 1}]).join())
    assert coordinator.requests[-1].assignments == []


def test_leader_detects_new_partitions():
    async def run():
        members = [JoinedMember("me", None, ORDERS)]
        coordinator = ScriptedCoordinator(joined(leader="me", members=members), synced(orders=[0]))
        member = member_of(coordinator, [{"orders": 1}, {"orders": 1}, {"orders": 2}])
        await member.join()
        assert not await member.partitions_changed()
        assert await member.partitions_changed()

    asyncio.run(run())


def test_follower_does_not_check_partitions():
    async def run():
        member = member_of(ScriptedCoordinator(joined(), synced()))
        await member.join()
        assert not await member.partitions_changed()

    asyncio.run(run())


def test_join_is_retried_during_a_rebalance():
    coordinator = ScriptedCoordinator(
        joined(),
        error_response(SyncGroupResponse, ErrorCode.REBALANCE_IN_PROGRESS),
        joined(),
        error_response(SyncGroupResponse, ErrorCode.UNKNOWN_MEMBER_ID),
        joined(member_id="new member"),
        synced(orders=[1]),
    )
    assert asyncio.run(member_of(coordinator).join()) == [("orders", 1)]
    assert [coordinator.requests[index].member_id for index in (0, 2, 4)] == ["", "me", ""]


def test_join_attempts_are_limited():
    never = [error_response(JoinGroupResponse, ErrorCode.REBALANCE_IN_PROGRESS)] * ROUNDS_COUNT_MAX
    with pytest.raises(BrokerResponseError, match="REBALANCE_IN_PROGRESS"):
        asyncio.run(member_of(ScriptedCoordinator(*never)).join())
    inconsistent = error_response(JoinGroupResponse, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    with pytest.raises(BrokerResponseError, match="try another --assignor"):
        asyncio.run(member_of(ScriptedCoordinator(inconsistent)).join())


@pytest.mark.parametrize(
    ("code", "is_current", "member_id", "is_in_group"),
    [
        (ErrorCode.NONE, True, "me", True),
        (ErrorCode.REBALANCE_IN_PROGRESS, False, "me", True),
        (ErrorCode.ILLEGAL_GENERATION, False, "me", False),
        (ErrorCode.UNKNOWN_MEMBER_ID, False, "", False),
    ],
)
def test_heartbeat_reports_the_state_of_the_generation(code, is_current, member_id, is_in_group):
    async def run():
        member = member_of(ScriptedCoordinator(joined(), synced(), HeartbeatResponse(0, code)))
        await member.join()
        assert await member.heartbeat() is is_current
        assert (member.member_id, member.is_in_group) == (member_id, is_in_group)

    asyncio.run(run())


def test_unauthorized_heartbeat_is_an_error():
    async def run():
        denied = HeartbeatResponse(0, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        member = member_of(ScriptedCoordinator(joined(), synced(), denied))
        await member.join()
        with pytest.raises(BrokerResponseError, match="GROUP_AUTHORIZATION_FAILED"):
            await member.heartbeat()

    asyncio.run(run())


def test_commit_has_member_id_and_generation():
    async def run():
        fenced = CommittedPartition(0, ErrorCode.ILLEGAL_GENERATION)
        coordinator = ScriptedCoordinator(
            joined(),
            synced(),
            OffsetCommitResponse(topics=[CommittedTopic("orders")]),
            OffsetCommitResponse(topics=[CommittedTopic("orders", partitions=[fenced])]),
        )
        member = member_of(coordinator)
        await member.join()
        await member.commit({("orders", 0): 5, ("orders", 2): 6})
        request = coordinator.requests[-1]
        assert (request.member_id, request.generation_id_or_member_epoch) == ("me", 7)
        (topic,) = request.topics
        assert [(each.index, each.committed_offset) for each in topic.partitions] == [
            (0, 5),
            (2, 6),
        ]

        with pytest.raises(
            BrokerResponseError, match=r"topic orders, partition 0: .*ILLEGAL_GENERATION"
        ):
            await member.commit({("orders", 0): 9})
        request_count = len(coordinator.requests)
        with pytest.raises(BrokerResponseError, match="UNKNOWN_MEMBER_ID"):
            await member.commit({("orders", 0): 9})
        assert len(coordinator.requests) == request_count, "no request is sent without membership"

    asyncio.run(run())


def test_leave_is_sent_once():
    async def run():
        coordinator = ScriptedCoordinator(joined(), synced(), LeaveGroupResponse())
        member = member_of(coordinator)
        await member.leave("not joined")
        await member.join()
        await member.leave("closed")
        await member.leave("closed")
        request = coordinator.requests[-1]
        assert [(each.member_id, each.reason) for each in request.members] == [("me", "closed")]
        assert len(coordinator.requests) == 3
        assert not member.is_in_group

    asyncio.run(run())
