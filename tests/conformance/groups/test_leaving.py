"""How members leave a classic group, one by one and in crowds."""

import pytest
from msgspec.structs import replace

from conformance.groups.classic import (
    OTHER_WISH,
    begin_join,
    describe,
    first_member,
    heartbeat,
    join,
    leave,
    promised_id,
    stable_member,
    stable_pair,
    wait_for,
    wait_until_empty,
)
from conformance.groups.codes import Code
from conformance.groups.servers import START_S_MAX
from kafscale.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, LeavingMember

pytestmark = pytest.mark.timeout(START_S_MAX)

SINGLE_VERSIONS = [0, 1, 2]
BATCHED_VERSIONS = [3, 4, 5]


@pytest.mark.parametrize("version", SINGLE_VERSIONS)
def test_one_leaves(talk, version):
    def goodbye(member, group=talk.group):
        request = LeaveGroupRequest(group, member_id=member)
        return talk.call(LEAVE_GROUP, version, request).error_code

    assert goodbye("nobody", "") == Code.INVALID_GROUP_ID
    assert goodbye("nobody") == Code.UNKNOWN_MEMBER_ID
    assert goodbye("") == Code.UNKNOWN_MEMBER_ID
    member = stable_member(talk)
    assert goodbye("nobody") == Code.UNKNOWN_MEMBER_ID
    assert goodbye("") == Code.UNKNOWN_MEMBER_ID
    assert goodbye(member) == Code.NONE
    wait_until_empty(talk)
    assert goodbye(member) == Code.UNKNOWN_MEMBER_ID
    describe(talk)
    assert heartbeat(talk, member=member) == Code.UNKNOWN_MEMBER_ID
    assert goodbye(promised_id(talk)) == Code.NONE
    assert first_member(talk).generation_id == 3


@pytest.mark.parametrize("version", BATCHED_VERSIONS)
def test_some_leave_and_some_were_never_there(talk, version):
    member = stable_member(talk)
    for group in ("", talk.group + "-unknown", talk.group):
        crowd = [
            LeavingMember("nobody", None, "because"),
            LeavingMember("", None),
            LeavingMember("", "no instance"),
            LeavingMember("nobody", "no instance"),
            LeavingMember(member),
            LeavingMember(member),
        ]
        talk.call(LEAVE_GROUP, version, LeaveGroupRequest(group, members=crowd))
    wait_until_empty(talk)
    describe(talk)


@pytest.mark.parametrize("version", BATCHED_VERSIONS)
def test_nobody_leaves(talk, version):
    talk.call(LEAVE_GROUP, version, LeaveGroupRequest(talk.group))
    stable_member(talk)
    talk.call(LEAVE_GROUP, version, LeaveGroupRequest(talk.group))
    describe(talk)


def test_a_follower_leaves(talk):
    leader, follower = stable_pair(talk)
    leave(talk, (follower, None))
    assert heartbeat(talk, member=leader, generation=2) == Code.REBALANCE_IN_PROGRESS
    describe(talk)
    assert join(talk, member=leader).generation_id == 3
    assert join(talk, member=follower).error_code == Code.UNKNOWN_MEMBER_ID


def test_the_leader_leaves(talk):
    leader, follower = stable_pair(talk)
    leave(talk, (leader, None))
    answer = join(talk, member=follower)
    assert (answer.generation_id, answer.leader) == (3, follower)


def test_who_leaves_while_others_wait_for_it(talk):
    leader, follower = stable_pair(talk)
    begin_join(talk, on="second", member=follower, protocols=OTHER_WISH)
    wait_for(talk, "PreparingRebalance", members=2)
    leave(talk, (leader, None))
    answer = talk.receive("second")
    assert (answer.generation_id, answer.leader) == (3, follower)


def test_who_leaves_while_it_waits_itself(talk):
    _, follower = stable_pair(talk)
    begin_join(talk, on="second", member=follower, protocols=OTHER_WISH)
    wait_for(talk, "PreparingRebalance", members=2)
    leave(talk, (follower, None))

    def named(answer):
        """Here a refusal always says whom it is about; in Kafka this one does not."""
        return replace(answer, member_id=follower)

    assert talk.receive("second", ours=named).error_code == Code.UNKNOWN_MEMBER_ID


def test_all_leave_at_once(talk):
    leader, follower = stable_pair(talk)
    leave(talk, (leader, None), (follower, None))
    wait_until_empty(talk)
    describe(talk)
    assert join(talk, member=leader).error_code == Code.UNKNOWN_MEMBER_ID
    assert first_member(talk).generation_id == 4
