"""How members join a classic group, and how they are refused."""

import pytest
from msgspec.structs import replace

from conformance.groups.classic import (
    OTHER_WISH,
    RANGE,
    begin_join,
    describe,
    first_member,
    heartbeat,
    join,
    join_request,
    promised_id,
    stable_member,
    stable_pair,
    sync,
    wait_for,
)
from conformance.groups.codes import Code
from conformance.groups.servers import START_S_MAX
from kafscale.protocol.messages.join_group import JOIN_GROUP

pytestmark = pytest.mark.timeout(START_S_MAX)

JOIN_VERSIONS = [2, 3, 4, 5, 6, 7, 8, 9]
"""Kafka 4 does not know older ones."""


@pytest.mark.parametrize("version", JOIN_VERSIONS)
def test_the_first_member_leads(talk, version):
    answer = first_member(talk, version, protocols={"b": b"1", "a": b"2"})
    assert (answer.generation_id, answer.protocol_name) == (1, "b")
    assert answer.leader == answer.member_id == answer.members[0].member_id


@pytest.mark.parametrize("version", JOIN_VERSIONS)
def test_a_member_that_nobody_knows(talk, version):
    assert join(talk, version, member="nobody").error_code == Code.UNKNOWN_MEMBER_ID
    first_member(talk, version)
    assert join(talk, version, member="nobody").error_code == Code.UNKNOWN_MEMBER_ID
    describe(talk)


@pytest.mark.parametrize("version", [2, 4, 6, 7, 9])
@pytest.mark.parametrize("timeout_ms", [-1, 0, 5_999, 6_000, 1_800_000, 1_800_001])
def test_session_timeouts(talk, version, timeout_ms):
    join(talk, version, session_ms=timeout_ms)
    describe(talk)


@pytest.mark.parametrize("version", [2, 9])
@pytest.mark.parametrize("timeout_ms", [-1, 0])
def test_rebalance_timeouts(talk, version, timeout_ms):
    join(talk, version, rebalance_ms=timeout_ms)


@pytest.mark.parametrize("version", JOIN_VERSIONS)
def test_a_group_without_a_name(talk, version):
    assert join(talk, version, group="").error_code == Code.INVALID_GROUP_ID
    assert join(talk, version, group="", member="nobody").error_code == Code.INVALID_GROUP_ID


@pytest.mark.parametrize("version", [2, 4, 6, 7, 9])
def test_protocols_that_a_new_group_cannot_have(talk, version):
    assert join(talk, version, protocols={}).error_code == Code.INCONSISTENT_GROUP_PROTOCOL
    assert join(talk, version, protocol_type="").error_code == Code.INCONSISTENT_GROUP_PROTOCOL
    join(talk, version, protocols={"": b""})
    describe(talk)


@pytest.mark.parametrize("version", [2, 4, 6, 7, 9])
def test_protocols_that_a_group_does_not_have(talk, version):
    stable_member(talk)
    refused = Code.INCONSISTENT_GROUP_PROTOCOL
    assert join(talk, version, protocols={"other": b""}).error_code == refused
    assert join(talk, version, protocols={}).error_code == refused
    assert join(talk, version, protocol_type="connect").error_code == refused
    assert join(talk, version, protocol_type="").error_code == refused


def test_a_member_that_changes_its_protocols_to_none_in_common(talk):
    leader, follower = stable_pair(talk)
    assert join(talk, member=follower, protocols={"other": b""}).error_code == 23
    join(talk, member=leader, protocol_type="connect")
    assert heartbeat(talk, member=leader, generation=2) == Code.NONE


@pytest.mark.parametrize("version", JOIN_VERSIONS)
def test_two_members_meet(talk, version):
    leader = first_member(talk, version).member_id
    sync(talk, 3, member=leader, assigned={leader: b"all"})
    said = {}
    if version >= 4:
        said = {"member": join(talk, version, on="second").member_id}
    begin_join(talk, version, on="second", **said)
    wait_for(talk, "PreparingRebalance", members=2)
    describe(talk)
    assert heartbeat(talk, member=leader) == Code.REBALANCE_IN_PROGRESS
    assert sync(talk, 3, member=leader).error_code == Code.REBALANCE_IN_PROGRESS
    answer = join(talk, version, member=leader, protocols={"range": b"", "more": b""})
    assert (answer.generation_id, len(answer.members)) == (2, 2)
    assert talk.receive("second").leader == leader
    describe(talk)


def test_the_protocol_that_most_members_prefer_is_chosen(talk):
    first = {"a": b"a1", "b": b"b1", "c": b"c1"}
    leader = first_member(talk, protocols=first).member_id
    assert sync(talk, member=leader, protocol="a").error_code == Code.NONE
    for on, protocols in (
        ("second", {"c": b"c2", "b": b"b2"}),
        ("third", {"d": b"d3", "b": b"b3", "c": b"c3"}),
    ):
        member = promised_id(talk, on=on, protocols=protocols)
        begin_join(talk, on=on, member=member, protocols=protocols)
    wait_for(talk, "PreparingRebalance", members=3)
    answer = join(talk, member=leader, protocols=first)
    assert answer.protocol_name == "b"
    talk.receive("second")
    talk.receive("third")


def test_joining_again_in_a_stable_group(talk):
    leader, follower = stable_pair(talk)
    again = join(talk, member=follower)
    assert (again.error_code, again.generation_id, again.members) == (0, 2, [])
    begin_join(talk, on="second", member=follower, protocols=OTHER_WISH)
    wait_for(talk, "PreparingRebalance", members=2)
    assert join(talk, member=leader).generation_id == 3
    assert talk.receive("second").generation_id == 3


def test_a_leader_that_joins_again_makes_a_new_generation(talk):
    leader = stable_member(talk)
    assert join(talk, member=leader).generation_id == 2
    assert join(talk, member=leader).generation_id == 2
    assert join(talk, member=leader, protocols=OTHER_WISH).generation_id == 3
    assert heartbeat(talk, member=leader, generation=3) == Code.NONE


def test_an_id_that_was_promised_is_not_a_member_yet(talk):
    member = promised_id(talk)
    describe(talk)
    assert heartbeat(talk, member=member, generation=0) == Code.UNKNOWN_MEMBER_ID
    assert sync(talk, member=member, generation=0).error_code == Code.UNKNOWN_MEMBER_ID
    assert join(talk, member=member, protocols=RANGE).generation_id == 1


def test_an_id_that_was_promised_to_a_dynamic_member(talk):
    request = join_request(talk, member=promised_id(talk), instance="instance")

    def unknown(answer):
        """Kafka fails on this with a bug of its own, which is not worth having."""
        assert answer.error_code == Code.UNKNOWN_SERVER_ERROR
        member_id = request.member_id
        return replace(answer, error_code=Code.UNKNOWN_MEMBER_ID, member_id=member_id)

    talk.call(JOIN_GROUP, 9, request, ours=unknown)


def test_protocol_types_that_are_nobody_elses(talk):
    """Such as Kafka Connect's: the broker does not read what it hands on."""
    said = {"protocol_type": "connect", "protocols": {"sessioned": b"\x00\xff"}}
    leader = first_member(talk, **said).member_id
    answer = sync(
        talk,
        member=leader,
        protocol_type="connect",
        protocol="sessioned",
        assigned={leader: b"\xff"},
    )
    assert (answer.protocol_type, answer.assignment) == ("connect", b"\xff")
    describe(talk)
