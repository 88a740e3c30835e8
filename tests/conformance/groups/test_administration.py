"""Groups as administrators see them: described, listed, deleted, their offsets forgotten."""

import pytest

from conformance.groups.classic import (
    RANGE,
    describe,
    first_member,
    leave,
    promised_id,
    stable_member,
    wait_until_empty,
)
from conformance.groups.codes import Code
from conformance.groups.consumer import consumer
from conformance.groups.offsets import commit, fetch
from conformance.groups.operations import without_configs
from conformance.groups.servers import START_S_MAX
from kafscale.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from kafscale.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from kafscale.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from kafscale.protocol.messages.offset_delete import (
    OFFSET_DELETE,
    OffsetDeleteRequest,
    PartitionToDelete,
    TopicToDelete,
)

pytestmark = pytest.mark.timeout(START_S_MAX)

DESCRIBE_VERSIONS = [0, 1, 2, 3, 4, 5, 6]


# --- describing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", DESCRIBE_VERSIONS)
def test_a_group_in_each_state(talk, version):
    describe(talk, version)
    commit(talk)
    describe(talk, version)
    promised_id(talk)
    describe(talk, version)
    member = first_member(talk).member_id
    describe(talk, version)
    leave(talk, (member, None))
    wait_until_empty(talk)
    describe(talk, version)
    stable = talk.group + "-stable"
    stable_member(talk, group=stable, instance="a")
    request = DescribeGroupsRequest([stable, "", talk.group], include_authorized_operations=True)
    talk.call(DESCRIBE_GROUPS, version, request, ours=without_configs)


@pytest.mark.parametrize("version", DESCRIBE_VERSIONS)
def test_groups_that_are_not_there_or_not_classic(talk, version):
    consumer(talk)
    groups = [talk.group, talk.group + "-none", ""]
    talk.call(DESCRIBE_GROUPS, version, DescribeGroupsRequest(groups))
    request = DescribeGroupsRequest(groups, include_authorized_operations=True)
    talk.call(DESCRIBE_GROUPS, version, request, ours=without_configs)
    talk.call(DESCRIBE_GROUPS, version, DescribeGroupsRequest([]))


# --- listing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 5])
def test_all_groups(talk, version):
    commit(talk, group=talk.group + "-offsets")
    stable_member(talk, group=talk.group + "-stable")
    first_member(talk, group=talk.group + "-completing", protocol_type="connect")
    promised_id(talk, group=talk.group + "-promised")
    consumer(talk, group=talk.group + "-consumer")
    talk.call(LIST_GROUPS, version, ListGroupsRequest())


STATES = [
    ["Stable"],
    ["stable"],
    ["STABLE"],
    ["Empty"],
    ["empty", "Stable"],
    ["CompletingRebalance"],
    ["completing_rebalance"],
    ["Nonsense"],
    ["Nonsense", "Stable"],
    [""],
    ["Dead"],
    ["Assigning"],
    ["Reconciling"],
    ["NotReady"],
    ["Unknown"],
]
TYPES = [
    ["classic"],
    ["Classic"],
    ["consumer"],
    ["CONSUMER", "classic"],
    ["Nonsense"],
    [""],
    ["share"],
    ["streams"],
    ["unknown"],
    ["Nonsense", "classic"],
]


@pytest.mark.parametrize("version", [4, 5])
def test_groups_in_some_states(talk, version):
    commit(talk, group=talk.group + "-offsets")
    stable_member(talk, group=talk.group + "-stable")
    first_member(talk, group=talk.group + "-completing")
    consumer(talk, group=talk.group + "-consumer")
    for states in STATES:
        talk.call(LIST_GROUPS, version, ListGroupsRequest(states))


def test_groups_of_some_types(talk):
    commit(talk, group=talk.group + "-offsets")
    stable_member(talk, group=talk.group + "-stable")
    consumer(talk, group=talk.group + "-consumer")
    for types in TYPES:
        talk.call(LIST_GROUPS, 5, ListGroupsRequest([], types))
        talk.call(LIST_GROUPS, 5, ListGroupsRequest(["Stable"], types))


# --- deleting -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2])
def test_groups_are_deleted(talk, version):
    def delete(*groups):
        return talk.call(DELETE_GROUPS, version, DeleteGroupsRequest(list(groups)))

    empty, full, promised = talk.group + "-empty", talk.group + "-full", talk.group + "-promised"
    commit(talk, group=empty)
    member = stable_member(talk, group=full)
    promised_id(talk, group=promised)
    delete()
    delete(talk.group, empty, full, promised, "")
    delete(empty)
    describe(talk, 6, empty)
    fetch(talk, groups=[empty])
    leave(talk, (member, None), group=full)
    wait_until_empty(talk, full)
    delete(full)
    describe(talk, 6, full)


def test_a_group_that_is_deleted_twice_at_once(talk):
    commit(talk)
    talk.call(DELETE_GROUPS, 2, DeleteGroupsRequest([talk.group, talk.group]))


# --- forgetting offsets -------------------------------------------------------------------------


def forget(talk, group=None, **places):
    topics = [
        TopicToDelete(topic, [PartitionToDelete(index) for index in indexes])
        for topic, indexes in places.items()
    ]
    request = OffsetDeleteRequest(talk.group if group is None else group, topics)
    return talk.call(OFFSET_DELETE, 0, request)


def test_offsets_are_forgotten(talk):
    forget(talk, one=[0])
    forget(talk, group="", one=[0])
    commit(talk, places={"one": [0], "three": [0, 1]})
    forget(talk, one=[0, 5, -1], none=[0], three=[1, 2])
    fetch(talk)
    forget(talk)
    forget(talk, one=[])
    forget(talk, three=[0])
    describe(talk)


def test_offsets_that_members_need_are_not_forgotten(talk):
    member = stable_member(talk, protocols=RANGE)
    commit(talk, member=member, generation=1, places={"one": [0], "three": [0]})
    answer = forget(talk, one=[0], three=[0, 1, 7], none=[0])
    codes = {each.error_code for topic in answer.topics for each in topic.partitions}
    assert Code.GROUP_SUBSCRIBED_TO_TOPIC in codes
    fetch(talk)


def test_offsets_of_a_group_that_is_no_consumers(talk):
    said = {"protocol_type": "connect", "protocols": {"x": b""}}
    first_member(talk, **said)
    forget(talk, one=[0], none=[0])


def test_offsets_of_a_group_in_a_rebalance(talk):
    first_member(talk)
    forget(talk, one=[0], three=[0])


def test_offsets_of_a_consumer_group(talk):
    member = consumer(talk, names=["three"])
    commit(talk, member=member, generation=1, places={"one": [0], "three": [0]})
    forget(talk, one=[0], three=[0], none=[0])
    fetch(talk)
