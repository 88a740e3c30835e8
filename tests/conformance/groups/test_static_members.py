"""Static members of classic groups: they return, are replaced, fenced, and sent away."""

import pytest

from conformance.groups.classic import (
    OTHER_WISH,
    begin_join,
    describe,
    heartbeat,
    join,
    leave,
    sync,
    wait_for,
    wait_until_empty,
)
from conformance.groups.codes import Code
from conformance.groups.servers import START_S_MAX

pytestmark = pytest.mark.timeout(START_S_MAX)

STATIC_VERSIONS = [5, 6, 7, 8, 9]


def stable_instance(talk, version=9) -> str:
    """A static member that is the leader of a stable group."""
    answer = join(talk, version, instance="a")
    assert answer.error_code == Code.NONE
    assigned = {answer.member_id: b"all"}
    sync(talk, member=answer.member_id, instance="a", assigned=assigned)
    return answer.member_id


def stable_instances(talk) -> tuple[str, str]:
    """Two, the first of which leads, in generation 2."""
    leader = stable_instance(talk)
    begin_join(talk, on="second", instance="b")
    wait_for(talk, "PreparingRebalance", members=2)
    join(talk, instance="a", member=leader)
    follower = talk.receive("second").member_id
    assigned = {leader: b"the leader's", follower: b"the follower's"}
    sync(talk, member=leader, instance="a", generation=2, assigned=assigned)
    sync(talk, member=follower, instance="b", generation=2)
    return leader, follower


@pytest.mark.parametrize("version", STATIC_VERSIONS)
def test_a_leader_returns(talk, version):
    first = stable_instance(talk, version)
    second = join(talk, version, instance="a")
    assert (second.error_code, second.generation_id) == (0, 1)
    assert second.skip_assignment == (version == 9)
    assert second.leader == (second.member_id if version == 9 else first)
    answer = sync(talk, member=second.member_id, instance="a")
    assert answer.assignment == b"all"
    describe(talk)
    assert heartbeat(talk, member=first, instance="a") == Code.FENCED_INSTANCE_ID
    assert heartbeat(talk, member=first) == Code.UNKNOWN_MEMBER_ID
    assert heartbeat(talk, member=second.member_id, instance="a") == Code.NONE


@pytest.mark.parametrize("version", STATIC_VERSIONS)
def test_a_leader_returns_with_another_wish(talk, version):
    stable_instance(talk, version)
    join(talk, version, instance="a", protocols=OTHER_WISH)
    describe(talk)


@pytest.mark.parametrize("version", STATIC_VERSIONS)
def test_a_leader_returns_with_another_protocol(talk, version):
    stable_instance(talk, version)
    protocols = {"other": b"", "range": b""}
    assert join(talk, version, instance="a", protocols=protocols).generation_id == 2


@pytest.mark.parametrize("version", STATIC_VERSIONS)
def test_a_follower_returns(talk, version):
    _, follower = stable_instances(talk)
    answer = join(talk, version, instance="b")
    assert (answer.generation_id, answer.members, answer.skip_assignment) == (2, [], False)
    answer = sync(talk, member=answer.member_id, instance="b", generation=2)
    assert answer.assignment == b"the follower's"
    describe(talk)
    assert sync(talk, member=follower, instance="b", generation=2).error_code == 82


def test_a_leader_of_others_returns(talk):
    _, follower = stable_instances(talk)
    answer = join(talk, instance="a")
    assert (answer.skip_assignment, len(answer.members)) == (True, 2)
    assert heartbeat(talk, member=follower, instance="b", generation=2) == Code.NONE


def test_a_return_while_the_assignment_is_awaited(talk):
    first = join(talk, instance="a").member_id
    second = join(talk, instance="a")
    assert second.generation_id == 2
    assert sync(talk, member=first, instance="a").error_code == Code.FENCED_INSTANCE_ID
    assert sync(talk, member=second.member_id, instance="a", generation=2).error_code == 0


def test_a_return_while_members_are_called_together(talk):
    leader, follower = stable_instances(talk)
    begin_join(talk, on="second", instance="b", member=follower, protocols=OTHER_WISH)
    wait_for(talk, "PreparingRebalance", members=2)
    begin_join(talk, on="third", instance="b", protocols=OTHER_WISH)
    assert talk.receive("second").error_code == Code.FENCED_INSTANCE_ID
    assert join(talk, instance="a", member=leader).generation_id == 3
    assert talk.receive("third").generation_id == 3


def test_two_with_one_instance(talk):
    first = stable_instance(talk)
    assert join(talk, instance="a", member="other").error_code == Code.FENCED_INSTANCE_ID
    assert heartbeat(talk, member="other", instance="a") == Code.FENCED_INSTANCE_ID
    assert heartbeat(talk, member=first, instance="other") == Code.UNKNOWN_MEMBER_ID
    assert sync(talk, member="other", instance="a").error_code == Code.FENCED_INSTANCE_ID
    assert sync(talk, member=first, instance="other").error_code == Code.UNKNOWN_MEMBER_ID
    assert heartbeat(talk, member="", instance="a") == Code.FENCED_INSTANCE_ID
    heartbeat(talk, member="other", instance="a", generation=9)
    join(talk, instance="other", member=first)
    assert heartbeat(talk, member=first) == Code.NONE


def test_an_instance_without_a_name(talk):
    join(talk, instance="")
    describe(talk)


def test_static_members_are_sent_away(talk):
    leader, follower = stable_instances(talk)
    leave(talk, (leader, "b"), ("other", "a"), ("", "other"), ("nobody", "other"))
    assert heartbeat(talk, member=leader, instance="a", generation=2) == Code.NONE
    leave(talk, ("", "b"))
    assert heartbeat(talk, member=leader, instance="a", generation=2) == 27
    assert heartbeat(talk, member=follower, instance="b", generation=2) == 25
    leave(talk, (leader, "a"))
    wait_until_empty(talk)
    describe(talk)


def test_a_static_member_may_leave_by_its_id_alone(talk):
    member = stable_instance(talk)
    leave(talk, (member, None))
    wait_until_empty(talk)
    describe(talk)


def test_static_and_dynamic_members_together(talk):
    first = stable_instance(talk)
    dynamic = join(talk, on="second").member_id
    begin_join(talk, on="second", member=dynamic)
    wait_for(talk, "PreparingRebalance", members=2)
    answer = join(talk, instance="a", member=first)
    assert [member.group_instance_id for member in answer.members].count("a") == 1
    talk.receive("second")
