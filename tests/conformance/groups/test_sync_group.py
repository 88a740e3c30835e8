"""SyncGroup and Heartbeat of classic members."""

import pytest

from conformance.groups.classic import (
    OTHER_SUBSCRIPTION,
    describe,
    first_member,
    heartbeat,
    join,
    pending_member_id,
    send_join,
    send_sync,
    stable_member,
    stable_pair,
    sync,
    wait_for,
)
from conformance.groups.codes import Code
from conformance.groups.servers import START_S_MAX

pytestmark = pytest.mark.timeout(START_S_MAX)

SYNC_VERSIONS = [0, 1, 2, 3, 4, 5]
HEARTBEAT_VERSIONS = [0, 1, 2, 3, 4]


@pytest.mark.parametrize("version", SYNC_VERSIONS)
def test_leader_sends_its_assignment(client, version):
    leader = first_member(client).member_id
    heartbeat(client, member=leader)
    response = sync(client, version, member=leader, assigned={leader: b"all", "stranger": b"none"})
    assert response.assignment == b"all"
    again = sync(client, version, member=leader, assigned={leader: b"something else"})
    assert again.assignment == b"all"
    describe(client)


@pytest.mark.parametrize("version", SYNC_VERSIONS)
def test_leader_assigns_nothing(client, version):
    leader = first_member(client).member_id
    assert sync(client, version, member=leader).assignment == b""
    describe(client)


@pytest.mark.parametrize("version", SYNC_VERSIONS)
def test_rejected_syncs(client, version):
    assert sync(client, version, member="unknown").error_code == Code.UNKNOWN_MEMBER_ID
    assert sync(client, version, member="unknown", group="").error_code == Code.INVALID_GROUP_ID
    leader = first_member(client).member_id
    assert sync(client, version, member="unknown").error_code == Code.UNKNOWN_MEMBER_ID
    for generation in (-1, 0, 2):
        refused = sync(client, version, member=leader, generation=generation)
        assert refused.error_code == Code.ILLEGAL_GENERATION
    assert sync(client, version, member=leader).error_code == Code.NONE
    for generation in (-1, 0, 2):
        sync(client, version, member=leader, generation=generation)


@pytest.mark.parametrize("is_stable", [False, True])
def test_sync_with_another_protocol(client, is_stable):
    leader = stable_member(client) if is_stable else first_member(client).member_id
    refused = Code.INCONSISTENT_GROUP_PROTOCOL
    for fields in (
        {"protocol_type": None},
        {"protocol": None},
        {"protocol_type": None, "protocol": None},
        {"protocol_type": "connect"},
        {"protocol_type": ""},
        {"protocol": "other"},
        {"protocol": ""},
    ):
        assert sync(client, member=leader, **fields).error_code == refused
    # An unknown member with a wrong protocol, and a wrong generation with one: which comes first?
    sync(client, member="unknown", protocol=None)
    sync(client, member="unknown", protocol="other")
    sync(client, member=leader, generation=7, protocol="other")
    sync(client, member=leader, group="", protocol=None)


def test_followers_wait_for_their_leader(client):
    leader, follower = stable_pair(client)
    describe(client)
    assert sync(client, member=follower, generation=2).assignment == b"the follower's"
    assert sync(client, member=leader, generation=2).assignment == b"the leader's"


def test_rebalance_fails_pending_syncs(client):
    leader, follower = stable_pair(client)
    send_join(client, on="second", member=follower, protocols=OTHER_SUBSCRIPTION)
    wait_for(client, "PreparingRebalance", members=2)
    join(client, member=leader)
    client.receive("second")
    send_sync(client, on="second", member=follower, generation=3)
    describe(client)
    third = pending_member_id(client, on="third")
    send_join(client, on="third", member=third)
    assert client.receive("second").error_code == Code.REBALANCE_IN_PROGRESS
    describe(client)
    send_join(client, on="second", member=follower)
    assert join(client, member=leader).generation_id == 4
    client.receive("second")
    client.receive("third")


@pytest.mark.parametrize("version", HEARTBEAT_VERSIONS)
def test_heartbeats(client, version):
    assert heartbeat(client, version, member="unknown") == Code.UNKNOWN_MEMBER_ID
    assert heartbeat(client, version, member="") == Code.UNKNOWN_MEMBER_ID
    assert heartbeat(client, version, member="unknown", group="") == Code.INVALID_GROUP_ID
    leader = first_member(client).member_id
    assert heartbeat(client, version, member=leader) == Code.NONE
    sync(client, member=leader)
    assert heartbeat(client, version, member=leader) == Code.NONE
    assert heartbeat(client, version, member="unknown") == Code.UNKNOWN_MEMBER_ID
    assert heartbeat(client, version, member="unknown", generation=9) == Code.UNKNOWN_MEMBER_ID
    for generation in (-1, 0, 2):
        assert heartbeat(client, version, member=leader, generation=generation) == 22


def test_heartbeat_during_a_rebalance(client):
    leader, follower = stable_pair(client)
    send_join(client, on="second", member=follower, protocols=OTHER_SUBSCRIPTION)
    wait_for(client, "PreparingRebalance", members=2)
    assert heartbeat(client, member=leader, generation=2) == Code.REBALANCE_IN_PROGRESS
    assert heartbeat(client, member=follower, generation=2) == Code.REBALANCE_IN_PROGRESS
    assert heartbeat(client, member=leader, generation=1) == Code.ILLEGAL_GENERATION
    sync(client, member=leader, generation=2)
    sync(client, member=leader, generation=3)
    join(client, member=leader)
    client.receive("second")
    assert heartbeat(client, member=leader, generation=3) == Code.NONE
