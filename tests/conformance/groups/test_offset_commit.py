"""OffsetCommit without membership, by members of classic groups, and by unknown members."""

import pytest

from conformance.groups.classic import (
    OTHER_SUBSCRIPTION,
    describe,
    first_member,
    join,
    leave,
    send_join,
    stable_pair,
    sync,
    wait_for,
    wait_until_empty,
)
from conformance.groups.codes import Code
from conformance.groups.offsets import COMMIT_VERSIONS, commit, fetch
from conformance.groups.servers import START_S_MAX
from kafscale.protocol.messages.offset_commit import OFFSET_COMMIT, OffsetCommitRequest

pytestmark = pytest.mark.timeout(START_S_MAX)

GENERATIONS = [-2, -1, 0, 1, 5]


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_commit_without_membership(client, version):
    assert commit(client, version, metadata="where we were", leader_epoch=3) == [Code.NONE]
    fetch(client)
    describe(client)


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_commit_for_unknown_partitions(client, version):
    commit(client, version, partitions={"one": [0, 1, -1], "none": [0, 1], "three": [3]})
    commit(client, version, partitions={"none": [0]})
    commit(client, version, partitions={"": [0]})
    fetch(client)


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_empty_commit(client, version):
    commit(client, version, partitions={})
    commit(client, version, partitions={"one": []})
    describe(client)
    commit(client, version, partitions={}, member="unknown", generation=4)


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_commit_of_a_member_without_group(client, version):
    for generation in GENERATIONS:
        commit(client, version, member="unknown", generation=generation, group=f"{client.group}a")
        commit(client, version, generation=generation, group=f"{client.group}b")
        commit(
            client, version, instance="instance", generation=generation, group=f"{client.group}c"
        )
    for name in ("a", "b", "c"):
        describe(client, 6, f"{client.group}{name}")


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_commit_of_a_member_to_a_group_with_offsets_only(client, version):
    commit(client)
    for generation in GENERATIONS:
        commit(client, version, member="unknown", generation=generation)
        commit(client, version, generation=generation)


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_commit_of_a_member(client, version):
    member = first_member(client).member_id
    assert commit(client, version, member=member, generation=1) == [Code.REBALANCE_IN_PROGRESS]
    sync(client, member=member)
    assert commit(client, version, member=member, generation=1) == [Code.NONE]
    for generation in (-2, -1, 0, 2):
        refused = commit(client, version, member=member, generation=generation)
        assert refused == [Code.ILLEGAL_GENERATION]
    assert commit(client, version, member="unknown", generation=1) == [Code.UNKNOWN_MEMBER_ID]
    assert commit(client, version, member="unknown", generation=9) == [Code.UNKNOWN_MEMBER_ID]
    assert commit(client, version) == [Code.UNKNOWN_MEMBER_ID]
    commit(client, version, generation=1)
    commit(client, version, instance="instance")
    # Some partitions cannot be committed anyway; which error do the others get?
    commit(
        client, version, member="unknown", generation=1, partitions={"none": [0], "three": [0, 9]}
    )
    leave(client, (member, None))
    wait_until_empty(client)
    commit(client, version, member=member, generation=1)
    commit(client, version, member=member, generation=2)
    assert commit(client, version) == [Code.NONE]


@pytest.mark.parametrize("version", [7, 9, 10])
def test_commit_of_a_static_member(client, version):
    member = join(client, instance="a").member_id
    sync(client, member=member, instance="a")
    assert commit(client, version, member=member, instance="a", generation=1) == [Code.NONE]
    refused = commit(client, version, member="other", instance="a", generation=1)
    assert refused == [Code.FENCED_INSTANCE_ID]
    commit(client, version, member=member, instance="other", generation=1)
    commit(client, version, instance="a")
    commit(client, version, instance="a", generation=1)
    commit(client, version, member=member, generation=1)


def test_commit_during_a_rebalance(client):
    leader, follower = stable_pair(client)
    send_join(client, on="second", member=follower, protocols=OTHER_SUBSCRIPTION)
    wait_for(client, "PreparingRebalance", members=2)
    assert commit(client, member=leader, generation=2) == [Code.NONE]
    assert commit(client, member=leader, generation=1) == [Code.ILLEGAL_GENERATION]
    join(client, member=leader)
    client.receive("second")
    assert commit(client, member=leader, generation=3) == [Code.REBALANCE_IN_PROGRESS]
    assert commit(client, member=leader, generation=2) == [Code.ILLEGAL_GENERATION]


@pytest.mark.parametrize("size", [4096, 4097])
def test_commit_metadata_limit(client, size):
    """Beyond ASCII, Kafka counts characters; Kafscale counts bytes, as the setting's name says."""
    commit(client, metadata="a" * size)
    fetch(client)
    describe(client)
    stranger = {"group": f"{client.group}-2", "member": "unknown", "generation": 4}
    commit(client, metadata="a" * size, **stranger)
    commit(client, metadata="a" * size, partitions={"none": [0]}, **stranger)


@pytest.mark.parametrize(
    "fields",
    [
        {"committed_offset": -1},
        {"committed_offset": -2},
        {"committed_offset": -1000},
        {"committed_offset": 2**63 - 1},
        {"leader_epoch": -2},
        {"leader_epoch": 2**31 - 1},
        {"metadata": None},
        {"metadata": ""},
    ],
)
def test_commit_boundary_values(client, fields):
    commit(client, **fields)
    fetch(client)
    fetch(client, partitions={"one": [0]})


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_empty_group_id(client, version):
    commit(client, version, group="")
    commit(client, version, group="", member="unknown", generation=1)
    fetch(client, groups=[""], partitions={"one": [0]})


@pytest.mark.parametrize("retention_ms", [-1, 0, 1_000_000])
def test_commit_retention_time(client, retention_ms):
    commit(client)
    request = OffsetCommitRequest(client.group, retention_time_ms=retention_ms)
    client.call(OFFSET_COMMIT, 4, request)


def test_commit_with_duplicate_topic(client):
    commit(client, partitions={"three": [1, 1, 2]})
    fetch(client)


def test_commit_in_a_group_of_another_protocol_type(client):
    fields = {"protocol_type": "connect", "protocols": {"x": b""}}
    member = first_member(client, **fields).member_id
    sync(client, member=member, protocol_type="connect", protocol="x")
    assert commit(client, member=member, generation=1) == [Code.NONE]
