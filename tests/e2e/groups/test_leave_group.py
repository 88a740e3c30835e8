"""N-14: LeaveGroup takes effect immediately, without waiting for a timer of the broker."""

import time

import pytest

from kafscale.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, LeavingMember
from services.scripted_members import join, scripted_members, sync

pytestmark = pytest.mark.timeout(60)

REBALANCE_IN_PROGRESS = 27


def test_leave_group_rebalances_the_others_within_a_second(server, group):
    with scripted_members(server.port, group, "connect", [b"one", b"two", b"three"]) as members:
        responses = join(members)
        sync(members, responses, {})
        generation = responses[0].generation_id

        began = time.monotonic()
        leaver, *others = members
        request = LeaveGroupRequest(group, members=[LeavingMember(leaver.member_id)])
        left = leaver.wire.call(LEAVE_GROUP, 5, request)
        assert [each.error_code for each in (left, *left.members)] == [0, 0]
        assert {each.heartbeat(generation) for each in others} == {REBALANCE_IN_PROGRESS}
        responses = join(others)
        synced = sync(others, responses, {each.member_id: each.metadata for each in others})
        assert [each.assignment for each in synced] == [each.metadata for each in others]
        assert {response.generation_id for response in responses} == {generation + 1}
        assert time.monotonic() - began < 1
