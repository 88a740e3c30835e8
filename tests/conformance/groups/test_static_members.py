"""Static members of classic groups: they return, are replaced, fenced, and removed."""

import pytest

from conformance.groups.classic import (
    OTHER_SUBSCRIPTION,
    describe,
    heartbeat,
    join,
    leave,
    send_join,
    sync,
    wait_for,
    wait_until_empty,
)
from conformance.groups.codes import Code
from conformance.groups.servers import START_S_MAX

pytestmark = pytest.mark.timeout(START_S_MAX)

STATIC_VERSIONS = [5, 6, 7, 8, 9]


def stable_instance(client, version=9) -> str:
    """A static member that is the leader of a stable group."""
    response = join(client, version, instance="a")
    assert response.error_code == Code.NONE
    assigned = {response.member_id: b"all"}
    sync(client, member=response.member_id, instance="a", assigned=assigned)
    return response.member_id


def stable_instances(client) -> tuple[str, str]:
    """Two, the first of which leads, in generation 2."""
    leader = stable_instance(client)
    send_join(client, on="second", instance="b")
    wait_for(client, "PreparingRebalance", members=2)
    join(client, instance="a", member=leader)
    follower = client.receive("second").member_id
    assigned = {leader: b"the leader's", follower: b"the follower's"}
    sync(client, member=leader, instance="a", generation=2, assigned=assigned)
    sync(client, member=follower, instance="b", generation=2)
    return leader, follower


@pytest.mark.parametrize("version", STATIC_VERSIONS)
def test_leader_returns(client, version):
    first = stable_instance(client, version)
    second = join(client, version, instance="a")
    assert (second.error_code, second.generation_id) == (0, 1)
    assert second.skip_assignment == (version == 9)
    assert second.leader == (second.member_id if version == 9 else first)
    response = sync(client, member=second.member_id, instance="a")
    assert response.assignment == b"all"
    describe(client)
    assert heartbeat(client, member=first, instance="a") == Code.FENCED_INSTANCE_ID
    assert heartbeat(client, member=first) == Code.UNKNOWN_MEMBER_ID
    assert heartbeat(client, member=second.member_id, instance="a") == Code.NONE


@pytest.mark.parametrize("version", STATIC_VERSIONS)
def test_leader_returns_with_another_subscription(client, version):
    stable_instance(client, version)
    join(client, version, instance="a", protocols=OTHER_SUBSCRIPTION)
    describe(client)


@pytest.mark.parametrize("version", STATIC_VERSIONS)
def test_leader_returns_with_another_protocol(client, version):
    stable_instance(client, version)
    protocols = {"other": b"", "range": b""}
    assert join(client, version, instance="a", protocols=protocols).generation_id == 2


@pytest.mark.parametrize("version", STATIC_VERSIONS)
def test_follower_returns(client, version):
    _, follower = stable_instances(client)
    response = join(client, version, instance="b")
    assert (response.generation_id, response.members, response.skip_assignment) == (2, [], False)
    response = sync(client, member=response.member_id, instance="b", generation=2)
    assert response.assignment == b"the follower's"
    describe(client)
    assert sync(client, member=follower, instance="b", generation=2).error_code == 82


def test_leader_of_others_returns(client):
    _, follower = stable_instances(client)
    response = join(client, instance="a")
    assert (response.skip_assignment, len(response.members)) == (True, 2)
    assert heartbeat(client, member=follower, instance="b", generation=2) == Code.NONE


def test_return_while_the_assignment_is_pending(client):
    first = join(client, instance="a").member_id
    second = join(client, instance="a")
    assert second.generation_id == 2
    assert sync(client, member=first, instance="a").error_code == Code.FENCED_INSTANCE_ID
    assert sync(client, member=second.member_id, instance="a", generation=2).error_code == 0


def test_return_during_a_rebalance(client):
    leader, follower = stable_instances(client)
    send_join(client, on="second", instance="b", member=follower, protocols=OTHER_SUBSCRIPTION)
    wait_for(client, "PreparingRebalance", members=2)
    send_join(client, on="third", instance="b", protocols=OTHER_SUBSCRIPTION)
    assert client.receive("second").error_code == Code.FENCED_INSTANCE_ID
    assert join(client, instance="a", member=leader).generation_id == 3
    assert client.receive("third").generation_id == 3


def test_two_members_with_one_instance(client):
    first = stable_instance(client)
    assert join(client, instance="a", member="other").error_code == Code.FENCED_INSTANCE_ID
    assert heartbeat(client, member="other", instance="a") == Code.FENCED_INSTANCE_ID
    assert heartbeat(client, member=first, instance="other") == Code.UNKNOWN_MEMBER_ID
    assert sync(client, member="other", instance="a").error_code == Code.FENCED_INSTANCE_ID
    assert sync(client, member=first, instance="other").error_code == Code.UNKNOWN_MEMBER_ID
    assert heartbeat(client, member="", instance="a") == Code.FENCED_INSTANCE_ID
    heartbeat(client, member="other", instance="a", generation=9)
    join(client, instance="other", member=first)
    assert heartbeat(client, member=first) == Code.NONE


def test_instance_id_is_empty(client):
    join(client, instance="")
    describe(client)


def test_static_members_are_removed(client):
    leader, follower = stable_instances(client)
    leave(client, (leader, "b"), ("other", "a"), ("", "other"), ("unknown", "other"))
    assert heartbeat(client, member=leader, instance="a", generation=2) == Code.NONE
    leave(client, ("", "b"))
    assert heartbeat(client, member=leader, instance="a", generation=2) == 27
    assert heartbeat(client, member=follower, instance="b", generation=2) == 25
    leave(client, (leader, "a"))
    wait_until_empty(client)
    describe(client)


def test_static_member_leaves_by_its_member_id(client):
    member = stable_instance(client)
    leave(client, (member, None))
    wait_until_empty(client)
    describe(client)


def test_static_and_dynamic_members_together(client):
    first = stable_instance(client)
    dynamic = join(client, on="second").member_id
    send_join(client, on="second", member=dynamic)
    wait_for(client, "PreparingRebalance", members=2)
    response = join(client, instance="a", member=first)
    assert [member.group_instance_id for member in response.members].count("a") == 1
    client.receive("second")
