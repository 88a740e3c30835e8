"""LeaveGroup of classic members, one by one and together."""

import pytest
from msgspec.structs import replace

from conformance.groups.classic import (
    OTHER_SUBSCRIPTION,
    describe,
    first_member,
    heartbeat,
    join,
    leave,
    pending_member_id,
    send_join,
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
def test_one_member_leaves(client, version):
    def goodbye(member, group=client.group):
        request = LeaveGroupRequest(group, member_id=member)
        return client.call(LEAVE_GROUP, version, request).error_code

    assert goodbye("unknown", "") == Code.INVALID_GROUP_ID
    assert goodbye("unknown") == Code.UNKNOWN_MEMBER_ID
    assert goodbye("") == Code.UNKNOWN_MEMBER_ID
    member = stable_member(client)
    assert goodbye("unknown") == Code.UNKNOWN_MEMBER_ID
    assert goodbye("") == Code.UNKNOWN_MEMBER_ID
    assert goodbye(member) == Code.NONE
    wait_until_empty(client)
    assert goodbye(member) == Code.UNKNOWN_MEMBER_ID
    describe(client)
    assert heartbeat(client, member=member) == Code.UNKNOWN_MEMBER_ID
    assert goodbye(pending_member_id(client)) == Code.NONE
    assert first_member(client).generation_id == 3


@pytest.mark.parametrize("version", BATCHED_VERSIONS)
def test_known_and_unknown_members_leave(client, version):
    member = stable_member(client)
    for group in ("", client.group + "-unknown", client.group):
        crowd = [
            LeavingMember("unknown", None, "because"),
            LeavingMember("", None),
            LeavingMember("", "no instance"),
            LeavingMember("unknown", "no instance"),
            LeavingMember(member),
            LeavingMember(member),
        ]
        client.call(LEAVE_GROUP, version, LeaveGroupRequest(group, members=crowd))
    wait_until_empty(client)
    describe(client)


@pytest.mark.parametrize("version", BATCHED_VERSIONS)
def test_leave_without_members(client, version):
    client.call(LEAVE_GROUP, version, LeaveGroupRequest(client.group))
    stable_member(client)
    client.call(LEAVE_GROUP, version, LeaveGroupRequest(client.group))
    describe(client)


def test_follower_leaves(client):
    leader, follower = stable_pair(client)
    leave(client, (follower, None))
    assert heartbeat(client, member=leader, generation=2) == Code.REBALANCE_IN_PROGRESS
    describe(client)
    assert join(client, member=leader).generation_id == 3
    assert join(client, member=follower).error_code == Code.UNKNOWN_MEMBER_ID


def test_leader_leaves(client):
    leader, follower = stable_pair(client)
    leave(client, (leader, None))
    response = join(client, member=follower)
    assert (response.generation_id, response.leader) == (3, follower)


def test_member_leaves_while_others_wait_for_it(client):
    leader, follower = stable_pair(client)
    send_join(client, on="second", member=follower, protocols=OTHER_SUBSCRIPTION)
    wait_for(client, "PreparingRebalance", members=2)
    leave(client, (leader, None))
    response = client.receive("second")
    assert (response.generation_id, response.leader) == (3, follower)


def test_member_leaves_while_its_join_is_pending(client):
    _, follower = stable_pair(client)
    send_join(client, on="second", member=follower, protocols=OTHER_SUBSCRIPTION)
    wait_for(client, "PreparingRebalance", members=2)
    leave(client, (follower, None))

    def named(response):
        """Kafscale always names the member of an error; Kafka does not here."""
        return replace(response, member_id=follower)

    assert client.receive("second", ours=named).error_code == Code.UNKNOWN_MEMBER_ID


def test_all_members_leave_in_one_request(client):
    leader, follower = stable_pair(client)
    leave(client, (leader, None), (follower, None))
    wait_until_empty(client)
    describe(client)
    assert join(client, member=leader).error_code == Code.UNKNOWN_MEMBER_ID
    assert first_member(client).generation_id == 4
