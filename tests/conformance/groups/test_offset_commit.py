"""Commits: by those who are in no group, by members of classic groups, and by neither."""

import pytest

from conformance.groups.classic import (
    OTHER_WISH,
    begin_join,
    describe,
    first_member,
    join,
    leave,
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
def test_a_simple_commit(talk, version):
    assert commit(talk, version, metadata="where we were", leader_epoch=3) == [Code.NONE]
    fetch(talk)
    describe(talk)


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_topics_and_partitions_that_are_not_there(talk, version):
    commit(talk, version, places={"one": [0, 1, -1], "none": [0, 1], "three": [3]})
    commit(talk, version, places={"none": [0]})
    commit(talk, version, places={"": [0]})
    fetch(talk)


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_nothing_to_commit(talk, version):
    commit(talk, version, places={})
    commit(talk, version, places={"one": []})
    describe(talk)
    commit(talk, version, places={}, member="nobody", generation=4)


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_a_member_and_a_generation_where_there_is_no_group(talk, version):
    for generation in GENERATIONS:
        commit(talk, version, member="nobody", generation=generation, group=f"{talk.group}a")
        commit(talk, version, generation=generation, group=f"{talk.group}b")
        commit(talk, version, instance="instance", generation=generation, group=f"{talk.group}c")
    for name in ("a", "b", "c"):
        describe(talk, 6, f"{talk.group}{name}")


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_a_member_and_a_generation_where_the_group_has_only_offsets(talk, version):
    commit(talk)
    for generation in GENERATIONS:
        commit(talk, version, member="nobody", generation=generation)
        commit(talk, version, generation=generation)


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_a_member_commits(talk, version):
    member = first_member(talk).member_id
    assert commit(talk, version, member=member, generation=1) == [Code.REBALANCE_IN_PROGRESS]
    sync(talk, member=member)
    assert commit(talk, version, member=member, generation=1) == [Code.NONE]
    for generation in (-2, -1, 0, 2):
        refused = commit(talk, version, member=member, generation=generation)
        assert refused == [Code.ILLEGAL_GENERATION]
    assert commit(talk, version, member="nobody", generation=1) == [Code.UNKNOWN_MEMBER_ID]
    assert commit(talk, version, member="nobody", generation=9) == [Code.UNKNOWN_MEMBER_ID]
    assert commit(talk, version) == [Code.UNKNOWN_MEMBER_ID]
    commit(talk, version, generation=1)
    commit(talk, version, instance="instance")
    # Some of it cannot be committed anyhow; what is said of the rest?
    commit(talk, version, member="nobody", generation=1, places={"none": [0], "three": [0, 9]})
    leave(talk, (member, None))
    wait_until_empty(talk)
    commit(talk, version, member=member, generation=1)
    commit(talk, version, member=member, generation=2)
    assert commit(talk, version) == [Code.NONE]


@pytest.mark.parametrize("version", [7, 9, 10])
def test_a_static_member_commits(talk, version):
    member = join(talk, instance="a").member_id
    sync(talk, member=member, instance="a")
    assert commit(talk, version, member=member, instance="a", generation=1) == [Code.NONE]
    refused = commit(talk, version, member="other", instance="a", generation=1)
    assert refused == [Code.FENCED_INSTANCE_ID]
    commit(talk, version, member=member, instance="other", generation=1)
    commit(talk, version, instance="a")
    commit(talk, version, instance="a", generation=1)
    commit(talk, version, member=member, generation=1)


def test_a_member_commits_while_the_group_rebalances(talk):
    leader, follower = stable_pair(talk)
    begin_join(talk, on="second", member=follower, protocols=OTHER_WISH)
    wait_for(talk, "PreparingRebalance", members=2)
    assert commit(talk, member=leader, generation=2) == [Code.NONE]
    assert commit(talk, member=leader, generation=1) == [Code.ILLEGAL_GENERATION]
    join(talk, member=leader)
    talk.receive("second")
    assert commit(talk, member=leader, generation=3) == [Code.REBALANCE_IN_PROGRESS]
    assert commit(talk, member=leader, generation=2) == [Code.ILLEGAL_GENERATION]


@pytest.mark.parametrize("size", [4096, 4097])
def test_metadata_is_so_long_at_most(talk, size):
    """Beyond ASCII, Kafka counts letters; here they are bytes, as the setting's name says."""
    commit(talk, metadata="a" * size)
    fetch(talk)
    describe(talk)
    stranger = {"group": f"{talk.group}-2", "member": "nobody", "generation": 4}
    commit(talk, metadata="a" * size, **stranger)
    commit(talk, metadata="a" * size, places={"none": [0]}, **stranger)


@pytest.mark.parametrize(
    "said",
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
def test_values_at_the_edge(talk, said):
    commit(talk, **said)
    fetch(talk)
    fetch(talk, places={"one": [0]})


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_a_group_without_a_name(talk, version):
    commit(talk, version, group="")
    commit(talk, version, group="", member="nobody", generation=1)
    fetch(talk, groups=[""], places={"one": [0]})


@pytest.mark.parametrize("retention_ms", [-1, 0, 1_000_000])
def test_a_time_to_keep_offsets_for(talk, retention_ms):
    commit(talk)
    request = OffsetCommitRequest(talk.group, retention_time_ms=retention_ms)
    talk.call(OFFSET_COMMIT, 4, request)


def test_a_topic_that_is_named_twice(talk):
    commit(talk, places={"three": [1, 1, 2]})
    fetch(talk)


def test_a_stable_group_whose_members_are_no_consumers(talk):
    said = {"protocol_type": "connect", "protocols": {"x": b""}}
    member = first_member(talk, **said).member_id
    sync(talk, member=member, protocol_type="connect", protocol="x")
    assert commit(talk, member=member, generation=1) == [Code.NONE]
