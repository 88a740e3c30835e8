"""Groups for administrators: describe, list, delete, and delete offsets."""

import pytest

from conformance.groups.classic import (
    RANGE,
    describe,
    first_member,
    leave,
    pending_member_id,
    stable_member,
    wait_until_empty,
)
from conformance.groups.codes import Code
from conformance.groups.consumer import joined_consumer
from conformance.groups.offsets import commit, fetch
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
def test_describe_group_in_each_state(client, version):
    describe(client, version)
    commit(client)
    describe(client, version)
    pending_member_id(client)
    describe(client, version)
    member = first_member(client).member_id
    describe(client, version)
    leave(client, (member, None))
    wait_until_empty(client)
    describe(client, version)
    stable = client.group + "-stable"
    stable_member(client, group=stable, instance="a")
    request = DescribeGroupsRequest([stable, "", client.group], include_authorized_operations=True)
    client.call(DESCRIBE_GROUPS, version, request)


@pytest.mark.parametrize("version", DESCRIBE_VERSIONS)
def test_describe_unknown_and_consumer_groups(client, version):
    joined_consumer(client)
    groups = [client.group, client.group + "-none", ""]
    client.call(DESCRIBE_GROUPS, version, DescribeGroupsRequest(groups))
    request = DescribeGroupsRequest(groups, include_authorized_operations=True)
    client.call(DESCRIBE_GROUPS, version, request)
    client.call(DESCRIBE_GROUPS, version, DescribeGroupsRequest([]))


# --- listing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 5])
def test_list_all_groups(client, version):
    commit(client, group=client.group + "-offsets")
    stable_member(client, group=client.group + "-stable")
    first_member(client, group=client.group + "-completing", protocol_type="connect")
    pending_member_id(client, group=client.group + "-promised")
    joined_consumer(client, group=client.group + "-consumer")
    client.call(LIST_GROUPS, version, ListGroupsRequest())


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
def test_list_groups_by_state(client, version):
    commit(client, group=client.group + "-offsets")
    stable_member(client, group=client.group + "-stable")
    first_member(client, group=client.group + "-completing")
    joined_consumer(client, group=client.group + "-consumer")
    for states in STATES:
        client.call(LIST_GROUPS, version, ListGroupsRequest(states))


def test_list_groups_by_type(client):
    commit(client, group=client.group + "-offsets")
    stable_member(client, group=client.group + "-stable")
    joined_consumer(client, group=client.group + "-consumer")
    for types in TYPES:
        client.call(LIST_GROUPS, 5, ListGroupsRequest([], types))
        client.call(LIST_GROUPS, 5, ListGroupsRequest(["Stable"], types))


# --- deleting -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2])
def test_delete_groups(client, version):
    def delete(*groups):
        return client.call(DELETE_GROUPS, version, DeleteGroupsRequest(list(groups)))

    empty, full, promised = (
        client.group + "-empty",
        client.group + "-full",
        client.group + "-promised",
    )
    commit(client, group=empty)
    member = stable_member(client, group=full)
    pending_member_id(client, group=promised)
    delete()
    delete(client.group, empty, full, promised, "")
    delete(empty)
    describe(client, 6, empty)
    fetch(client, groups=[empty])
    leave(client, (member, None), group=full)
    wait_until_empty(client, full)
    delete(full)
    describe(client, 6, full)


def test_delete_group_twice_in_one_request(client):
    commit(client)
    client.call(DELETE_GROUPS, 2, DeleteGroupsRequest([client.group, client.group]))


# --- deleting offsets ---------------------------------------------------------------------------


def forget(client, group=None, **partitions):
    topics = [
        TopicToDelete(topic, [PartitionToDelete(index) for index in indexes])
        for topic, indexes in partitions.items()
    ]
    request = OffsetDeleteRequest(client.group if group is None else group, topics)
    return client.call(OFFSET_DELETE, 0, request)


def test_delete_offsets(client):
    forget(client, one=[0])
    forget(client, group="", one=[0])
    commit(client, partitions={"one": [0], "three": [0, 1]})
    forget(client, one=[0, 5, -1], none=[0], three=[1, 2])
    fetch(client)
    forget(client)
    forget(client, one=[])
    forget(client, three=[0])
    describe(client)


def test_delete_offsets_of_subscribed_topics(client):
    member = stable_member(client, protocols=RANGE)
    commit(client, member=member, generation=1, partitions={"one": [0], "three": [0]})
    response = forget(client, one=[0], three=[0, 1, 7], none=[0])
    codes = {each.error_code for topic in response.topics for each in topic.partitions}
    assert Code.GROUP_SUBSCRIBED_TO_TOPIC in codes
    fetch(client)


def test_delete_offsets_of_another_protocol_type(client):
    fields = {"protocol_type": "connect", "protocols": {"x": b""}}
    first_member(client, **fields)
    forget(client, one=[0], none=[0])


def test_delete_offsets_during_a_rebalance(client):
    first_member(client)
    forget(client, one=[0], three=[0])


def test_delete_offsets_of_a_consumer_group(client):
    member = joined_consumer(client, names=["three"])
    commit(client, member=member, generation=1, partitions={"one": [0], "three": [0]})
    forget(client, one=[0], three=[0], none=[0])
    fetch(client)
