"""JoinGroup of classic members, and its errors."""

import pytest
from msgspec.structs import replace

from conformance.groups.classic import (
    OTHER_SUBSCRIPTION,
    RANGE,
    describe,
    first_member,
    heartbeat,
    join,
    join_request,
    pending_member_id,
    send_join,
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
def test_first_member_is_leader(client, version):
    response = first_member(client, version, protocols={"b": b"1", "a": b"2"})
    assert (response.generation_id, response.protocol_name) == (1, "b")
    assert response.leader == response.member_id == response.members[0].member_id


@pytest.mark.parametrize("version", JOIN_VERSIONS)
def test_unknown_member(client, version):
    assert join(client, version, member="unknown").error_code == Code.UNKNOWN_MEMBER_ID
    first_member(client, version)
    assert join(client, version, member="unknown").error_code == Code.UNKNOWN_MEMBER_ID
    describe(client)


@pytest.mark.parametrize("version", [2, 4, 6, 7, 9])
@pytest.mark.parametrize("timeout_ms", [-1, 0, 5_999, 6_000, 1_800_000, 1_800_001])
def test_session_timeouts(client, version, timeout_ms):
    join(client, version, session_ms=timeout_ms)
    describe(client)


@pytest.mark.parametrize("version", [2, 9])
@pytest.mark.parametrize("timeout_ms", [-1, 0])
def test_rebalance_timeouts(client, version, timeout_ms):
    join(client, version, rebalance_ms=timeout_ms)


@pytest.mark.parametrize("version", JOIN_VERSIONS)
def test_empty_group_id(client, version):
    assert join(client, version, group="").error_code == Code.INVALID_GROUP_ID
    assert join(client, version, group="", member="unknown").error_code == Code.INVALID_GROUP_ID


@pytest.mark.parametrize("version", [2, 4, 6, 7, 9])
def test_invalid_protocols_of_a_new_group(client, version):
    assert join(client, version, protocols={}).error_code == Code.INCONSISTENT_GROUP_PROTOCOL
    assert join(client, version, protocol_type="").error_code == Code.INCONSISTENT_GROUP_PROTOCOL
    join(client, version, protocols={"": b""})
    describe(client)


@pytest.mark.parametrize("version", [2, 4, 6, 7, 9])
def test_protocols_not_in_common(client, version):
    stable_member(client)
    refused = Code.INCONSISTENT_GROUP_PROTOCOL
    assert join(client, version, protocols={"other": b""}).error_code == refused
    assert join(client, version, protocols={}).error_code == refused
    assert join(client, version, protocol_type="connect").error_code == refused
    assert join(client, version, protocol_type="").error_code == refused


def test_member_changes_to_protocols_not_in_common(client):
    leader, follower = stable_pair(client)
    assert join(client, member=follower, protocols={"other": b""}).error_code == 23
    join(client, member=leader, protocol_type="connect")
    assert heartbeat(client, member=leader, generation=2) == Code.NONE


@pytest.mark.parametrize("version", JOIN_VERSIONS)
def test_two_members_join(client, version):
    leader = first_member(client, version).member_id
    sync(client, 3, member=leader, assigned={leader: b"all"})
    fields = {}
    if version >= 4:
        fields = {"member": join(client, version, on="second").member_id}
    send_join(client, version, on="second", **fields)
    wait_for(client, "PreparingRebalance", members=2)
    describe(client)
    assert heartbeat(client, member=leader) == Code.REBALANCE_IN_PROGRESS
    assert sync(client, 3, member=leader).error_code == Code.REBALANCE_IN_PROGRESS
    response = join(client, version, member=leader, protocols={"range": b"", "more": b""})
    assert (response.generation_id, len(response.members)) == (2, 2)
    assert client.receive("second").leader == leader
    describe(client)


def test_protocol_is_selected_by_majority(client):
    first = {"a": b"a1", "b": b"b1", "c": b"c1"}
    leader = first_member(client, protocols=first).member_id
    assert sync(client, member=leader, protocol="a").error_code == Code.NONE
    for on, protocols in (
        ("second", {"c": b"c2", "b": b"b2"}),
        ("third", {"d": b"d3", "b": b"b3", "c": b"c3"}),
    ):
        member = pending_member_id(client, on=on, protocols=protocols)
        send_join(client, on=on, member=member, protocols=protocols)
    wait_for(client, "PreparingRebalance", members=3)
    response = join(client, member=leader, protocols=first)
    assert response.protocol_name == "b"
    client.receive("second")
    client.receive("third")


def test_rejoin_of_a_stable_group(client):
    leader, follower = stable_pair(client)
    again = join(client, member=follower)
    assert (again.error_code, again.generation_id, again.members) == (0, 2, [])
    send_join(client, on="second", member=follower, protocols=OTHER_SUBSCRIPTION)
    wait_for(client, "PreparingRebalance", members=2)
    assert join(client, member=leader).generation_id == 3
    assert client.receive("second").generation_id == 3


def test_rejoin_of_the_leader_starts_a_generation(client):
    leader = stable_member(client)
    assert join(client, member=leader).generation_id == 2
    assert join(client, member=leader).generation_id == 2
    assert join(client, member=leader, protocols=OTHER_SUBSCRIPTION).generation_id == 3
    assert heartbeat(client, member=leader, generation=3) == Code.NONE


def test_pending_member_id_is_no_member_yet(client):
    member = pending_member_id(client)
    describe(client)
    assert heartbeat(client, member=member, generation=0) == Code.UNKNOWN_MEMBER_ID
    assert sync(client, member=member, generation=0).error_code == Code.UNKNOWN_MEMBER_ID
    assert join(client, member=member, protocols=RANGE).generation_id == 1


def test_pending_member_id_of_a_dynamic_member(client):
    request = join_request(client, member=pending_member_id(client), instance="instance")

    def unknown(response):
        """Kafka fails on this with a bug, which Kafscale does not copy."""
        assert response.error_code == Code.UNKNOWN_SERVER_ERROR
        member_id = request.member_id
        return replace(response, error_code=Code.UNKNOWN_MEMBER_ID, member_id=member_id)

    client.call(JOIN_GROUP, 9, request, ours=unknown)


def test_other_protocol_types(client):
    """Such as Kafka Connect's: the broker does not decode what it forwards."""
    fields = {"protocol_type": "connect", "protocols": {"sessioned": b"\x00\xff"}}
    leader = first_member(client, **fields).member_id
    response = sync(
        client,
        member=leader,
        protocol_type="connect",
        protocol="sessioned",
        assigned={leader: b"\xff"},
    )
    assert (response.protocol_type, response.assignment) == ("connect", b"\xff")
    describe(client)
