"""What groups are told of what they have committed."""

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
def test_what_was_committed(talk, version):
    commit(talk, places={"one": [0], "three": [0, 2]}, metadata="text", leader_epoch=4)
    fetch(talk, version, places={"one": [0], "three": [2, 1]})
    fetch(talk, version, places={})
    if version >= 2:
        fetch(talk, version)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_what_is_not_there(talk, version):
    places = {"none": [0, 1], "one": [0, 5, -1], "": [0], "three": []}
    fetch(talk, version, places=places)
    fetch(talk, version, places=places, groups=[""])
    commit(talk)
    fetch(talk, version, places=places)


@pytest.mark.parametrize("version", [2, 5, 6, 7, 8, 9, 10])
def test_all_of_a_group_that_is_not_there(talk, version):
    fetch(talk, version)
    fetch(talk, version, groups=[""])


@pytest.mark.parametrize("version", [8, 9, 10])
def test_several_groups(talk, version):
    groups = [talk.group + end for end in ("", "a", "b", "unknown")]
    for count, group in enumerate(groups[:3]):
        commit(talk, group=group, committed_offset=count)
    fetch(talk, version, groups=groups)
    fetch(talk, version, groups=groups, places={"one": [0], "three": [0]})
    fetch(talk, version, groups=groups, places={})
    talk.call(OFFSET_FETCH, version, OffsetFetchRequest())


@pytest.mark.parametrize("version", [7, 8, 9, 10])
def test_offsets_that_no_transaction_is_about_to_change(talk, version):
    commit(talk)
    fetch(talk, version, require_stable=True)
    fetch(talk, version, require_stable=True, places={"one": [0], "three": [0]})


@pytest.mark.parametrize("version", [9, 10])
def test_a_member_where_groups_are_classic(talk, version):
    fetch(talk, version, member="nobody", epoch=1)
    fetch(talk, version, member="nobody", epoch=0)
    fetch(talk, version, member="nobody")
    fetch(talk, version, epoch=3)
    member = stable_member(talk)
    commit(talk, member=member, generation=1)
    fetch(talk, version, member=member, epoch=1)
    fetch(talk, version, member=member, epoch=2)
    fetch(talk, version, member="nobody", epoch=2)
    fetch(talk, version, member="nobody")


@pytest.mark.parametrize("version", [9, 10])
def test_one_group_fails_and_another_does_not(talk, version):
    commit(talk)
    groups = [
        GroupToFetch(talk.group, topics=None),
        GroupToFetch(talk.group + "-none", member_id="nobody", member_epoch=4, topics=None),
        GroupToFetch("", topics=[]),
    ]
    answer = talk.call(OFFSET_FETCH, version, OffsetFetchRequest(groups=groups))
    assert {group.error_code for group in answer.groups} >= {Code.NONE}


def test_an_id_that_no_topic_has(talk):
    commit(talk)
    topics = [TopicToFetch(topic_id=bytes(16), partitions=[0]), TopicToFetch(topic_id=b"x" * 16)]
    groups = [GroupToFetch(talk.group, topics=topics)]
    talk.call(OFFSET_FETCH, 10, OffsetFetchRequest(groups=groups))
