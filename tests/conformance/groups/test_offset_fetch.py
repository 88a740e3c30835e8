"""OffsetFetch of committed offsets."""

import pytest

from conformance.groups.classic import stable_member
from conformance.groups.codes import Code
from conformance.groups.offsets import FETCH_VERSIONS, commit, fetch
from conformance.groups.servers import START_S_MAX
from kafscale.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    GroupToFetch,
    OffsetFetchRequest,
    TopicToFetch,
)

pytestmark = pytest.mark.timeout(START_S_MAX)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_fetch_committed_offsets(client, version):
    commit(client, partitions={"one": [0], "three": [0, 2]}, metadata="text", leader_epoch=4)
    fetch(client, version, partitions={"one": [0], "three": [2, 1]})
    fetch(client, version, partitions={})
    if version >= 2:
        fetch(client, version)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_fetch_unknown_partitions(client, version):
    partitions = {"none": [0, 1], "one": [0, 5, -1], "": [0], "three": []}
    fetch(client, version, partitions=partitions)
    fetch(client, version, partitions=partitions, groups=[""])
    commit(client)
    fetch(client, version, partitions=partitions)


@pytest.mark.parametrize("version", [2, 5, 6, 7, 8, 9, 10])
def test_fetch_all_of_an_unknown_group(client, version):
    fetch(client, version)
    fetch(client, version, groups=[""])


@pytest.mark.parametrize("version", [8, 9, 10])
def test_several_groups(client, version):
    groups = [client.group + end for end in ("", "a", "b", "unknown")]
    for count, group in enumerate(groups[:3]):
        commit(client, group=group, committed_offset=count)
    fetch(client, version, groups=groups)
    fetch(client, version, groups=groups, partitions={"one": [0], "three": [0]})
    fetch(client, version, groups=groups, partitions={})
    repeated = [*groups[:2], *groups[:2], groups[0]]
    fetch(client, version, groups=repeated)
    fetch(client, version, groups=repeated, partitions={"one": [0, 0], "three": [0, 9, 9]})
    client.call(OFFSET_FETCH, version, OffsetFetchRequest())


@pytest.mark.parametrize("version", [7, 8, 9, 10])
def test_fetch_stable_offsets(client, version):
    commit(client)
    fetch(client, version, require_stable=True)
    fetch(client, version, require_stable=True, partitions={"one": [0], "three": [0]})


@pytest.mark.parametrize("version", [9, 10])
def test_fetch_with_member_of_a_classic_group(client, version):
    fetch(client, version, member="unknown", epoch=1)
    fetch(client, version, member="unknown", epoch=0)
    fetch(client, version, member="unknown")
    fetch(client, version, epoch=3)
    member = stable_member(client)
    commit(client, member=member, generation=1)
    fetch(client, version, member=member, epoch=1)
    fetch(client, version, member=member, epoch=2)
    fetch(client, version, member="unknown", epoch=2)
    fetch(client, version, member="unknown")


@pytest.mark.parametrize("version", [9, 10])
def test_fetch_with_one_failing_group(client, version):
    commit(client)
    groups = [
        GroupToFetch(client.group, topics=None),
        GroupToFetch(client.group + "-none", member_id="unknown", member_epoch=4, topics=None),
        GroupToFetch("", topics=[]),
    ]
    response = client.call(OFFSET_FETCH, version, OffsetFetchRequest(groups=groups))
    assert {group.error_code for group in response.groups} >= {Code.NONE}


def test_fetch_unknown_topic_id(client):
    commit(client)
    topics = [TopicToFetch(topic_id=bytes(16), partitions=[0]), TopicToFetch(topic_id=b"x" * 16)]
    groups = [GroupToFetch(client.group, topics=topics)]
    client.call(OFFSET_FETCH, 10, OffsetFetchRequest(groups=groups))
