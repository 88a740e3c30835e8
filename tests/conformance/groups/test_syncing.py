"""How members of a classic group get their shares, and show that they are alive."""

import pytest

from conformance.groups.classic import (
    OTHER_WISH,
    begin_join,
    begin_sync,
    describe,
    first_member,
    heartbeat,
    join,
    promised_id,
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
def test_a_leader_hands_in_its_assignment(talk, version):
    leader = first_member(talk).member_id
    heartbeat(talk, member=leader)
    answer = sync(talk, version, member=leader, assigned={leader: b"all", "stranger": b"none"})
    assert answer.assignment == b"all"
    again = sync(talk, version, member=leader, assigned={leader: b"something else"})
    assert again.assignment == b"all"
    describe(talk)


@pytest.mark.parametrize("version", SYNC_VERSIONS)
def test_a_leader_that_assigns_nothing(talk, version):
    leader = first_member(talk).member_id
    assert sync(talk, version, member=leader).assignment == b""
    describe(talk)


@pytest.mark.parametrize("version", SYNC_VERSIONS)
def test_syncs_that_are_refused(talk, version):
    assert sync(talk, version, member="nobody").error_code == Code.UNKNOWN_MEMBER_ID
    assert sync(talk, version, member="nobody", group="").error_code == Code.INVALID_GROUP_ID
    leader = first_member(talk).member_id
    assert sync(talk, version, member="nobody").error_code == Code.UNKNOWN_MEMBER_ID
    for generation in (-1, 0, 2):
        refused = sync(talk, version, member=leader, generation=generation)
        assert refused.error_code == Code.ILLEGAL_GENERATION
    assert sync(talk, version, member=leader).error_code == Code.NONE
    for generation in (-1, 0, 2):
        sync(talk, version, member=leader, generation=generation)


@pytest.mark.parametrize("is_stable", [False, True])
def test_protocols_that_are_not_the_groups(talk, is_stable):
    leader = stable_member(talk) if is_stable else first_member(talk).member_id
    refused = Code.INCONSISTENT_GROUP_PROTOCOL
    for said in (
        {"protocol_type": None},
        {"protocol": None},
        {"protocol_type": None, "protocol": None},
        {"protocol_type": "connect"},
        {"protocol_type": ""},
        {"protocol": "other"},
        {"protocol": ""},
    ):
        assert sync(talk, member=leader, **said).error_code == refused
    # An unknown member with a wrong protocol, and a wrong generation with one: which comes first?
    sync(talk, member="nobody", protocol=None)
    sync(talk, member="nobody", protocol="other")
    sync(talk, member=leader, generation=7, protocol="other")
    sync(talk, member=leader, group="", protocol=None)


def test_followers_wait_for_their_leader(talk):
    leader, follower = stable_pair(talk)
    describe(talk)
    assert sync(talk, member=follower, generation=2).assignment == b"the follower's"
    assert sync(talk, member=leader, generation=2).assignment == b"the leader's"


def test_a_rebalance_calls_off_waiting_syncs(talk):
    leader, follower = stable_pair(talk)
    begin_join(talk, on="second", member=follower, protocols=OTHER_WISH)
    wait_for(talk, "PreparingRebalance", members=2)
    join(talk, member=leader)
    talk.receive("second")
    begin_sync(talk, on="second", member=follower, generation=3)
    describe(talk)
    third = promised_id(talk, on="third")
    begin_join(talk, on="third", member=third)
    assert talk.receive("second").error_code == Code.REBALANCE_IN_PROGRESS
    describe(talk)
    begin_join(talk, on="second", member=follower)
    assert join(talk, member=leader).generation_id == 4
    talk.receive("second")
    talk.receive("third")


@pytest.mark.parametrize("version", HEARTBEAT_VERSIONS)
def test_heartbeats(talk, version):
    assert heartbeat(talk, version, member="nobody") == Code.UNKNOWN_MEMBER_ID
    assert heartbeat(talk, version, member="") == Code.UNKNOWN_MEMBER_ID
    assert heartbeat(talk, version, member="nobody", group="") == Code.INVALID_GROUP_ID
    leader = first_member(talk).member_id
    assert heartbeat(talk, version, member=leader) == Code.NONE
    sync(talk, member=leader)
    assert heartbeat(talk, version, member=leader) == Code.NONE
    assert heartbeat(talk, version, member="nobody") == Code.UNKNOWN_MEMBER_ID
    assert heartbeat(talk, version, member="nobody", generation=9) == Code.UNKNOWN_MEMBER_ID
    for generation in (-1, 0, 2):
        assert heartbeat(talk, version, member=leader, generation=generation) == 22


def test_a_heartbeat_during_a_rebalance(talk):
    leader, follower = stable_pair(talk)
    begin_join(talk, on="second", member=follower, protocols=OTHER_WISH)
    wait_for(talk, "PreparingRebalance", members=2)
    assert heartbeat(talk, member=leader, generation=2) == Code.REBALANCE_IN_PROGRESS
    assert heartbeat(talk, member=follower, generation=2) == Code.REBALANCE_IN_PROGRESS
    assert heartbeat(talk, member=leader, generation=1) == Code.ILLEGAL_GENERATION
    sync(talk, member=leader, generation=2)
    sync(talk, member=leader, generation=3)
    join(talk, member=leader)
    talk.receive("second")
    assert heartbeat(talk, member=leader, generation=3) == Code.NONE
