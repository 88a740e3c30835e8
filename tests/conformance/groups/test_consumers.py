"""Members of consumer groups: join, reconcile, leave, and errors."""

import pytest
from msgspec.structs import replace

from conformance.groups.codes import Code
from conformance.groups.consumer import (
    assigned,
    consumer_heartbeat,
    consumer_heartbeat_request,
    describe_consumers,
    join_consumer,
    joined_consumer,
    with_assignment,
)
from conformance.groups.offsets import commit, fetch, fetched_code
from conformance.groups.servers import START_S_MAX
from kafscale.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from kafscale.protocol.messages.consumer_group_heartbeat import CONSUMER_GROUP_HEARTBEAT

pytestmark = pytest.mark.timeout(START_S_MAX)

ALL = {"three": [0, 1, 2]}


@pytest.mark.parametrize("version", [0, 1])
def test_member_joins_and_sends_heartbeats(client, version):
    response = join_consumer(client, version)
    assert (response.member_epoch, assigned(response)) == (1, ALL)
    describe_consumers(client, version)
    response = consumer_heartbeat(client, version, epoch=1)
    assert (response.member_epoch, assigned(response)) == (1, None)
    response = consumer_heartbeat(client, version, epoch=1, owned=ALL)
    assert (response.member_epoch, assigned(response)) == (1, None)
    describe_consumers(client, version)


def test_member_id_generated_by_the_coordinator(client):
    response = join_consumer(client, 0, member="")
    assert response.member_id == "#1"
    assert consumer_heartbeat(client, 0, member="#1", epoch=1).error_code == Code.NONE
    assert join_consumer(client, 1, member="").error_code == Code.INVALID_REQUEST


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    "fields",
    [
        {"group": ""},
        {"member": ""},
        {"instance": ""},
        {"rack_id": ""},
        {"epoch": -3},
        {"epoch": -2},
        {"epoch": -1},
        {"epoch": 1},
        {"rebalance_timeout_ms": -1},
        {"rebalance_timeout_ms": 0},
        {"owned": None},
        {"owned": ALL},
        {"names": None},
        {"names": []},
        {"names": ["none"]},
        {"names": ["three", "three"]},
        {"names": [""]},
        {"names": ["a b"]},
        {"server_assignor": ""},
        {"server_assignor": "nonsense"},
        {"server_assignor": "range"},
        {"member": "a" * 36},
        {"member": "a" * 37},
        {"group": " "},
        {"member": " "},
        {"rebalance_timeout_ms": -5},
        {"instance": " "},
        {"rack_id": " "},
        {"rack_id": "rack"},
        {"epoch": -2, "instance": "i"},
        {"epoch": -1, "instance": "i"},
        {"epoch": 4, "member": ""},
        {"epoch": -1, "member": ""},
        {"epoch": -2, "member": "", "instance": "i"},
    ],
    ids=str,
)
def test_fields_of_a_join(client, version, fields):
    fields = {name.replace("instance", "group_instance_id"): it for name, it in fields.items()}
    join_consumer(client, version, **fields)
    if "group" not in fields:
        describe_consumers(client)


@pytest.mark.parametrize(
    "fields",
    [
        {"subscribed_topic_names": []},
        {"subscribed_topic_names": ["one"]},
        {"server_assignor": "nonsense"},
        {"server_assignor": ""},
        {"server_assignor": "range"},
        {"rebalance_timeout_ms": 5},
        {"owned": {}},
        {"owned": {"three": [1]}},
        {"owned": {"one": [0]}},
        {"owned": {"none": [0]}},
        {"rack_id": "rack"},
        {"group_instance_id": "i"},
        {"subscribed_topic_regex": ""},
        {"member": "unknown"},
        {"epoch": 2},
        {"epoch": 0},
        {"epoch": -3},
        {"epoch": -2},
        {"epoch": -1},
        {"epoch": -1, "group_instance_id": "i"},
        {"epoch": -2, "group_instance_id": "i"},
        {"rack_id": ""},
        {"group_instance_id": ""},
    ],
    ids=str,
)
def test_fields_of_later_heartbeats(client, fields):
    joined_consumer(client)
    consumer_heartbeat(client, **{"epoch": 1, **fields})
    describe_consumers(client)
    consumer_heartbeat(client, epoch=1)
    consumer_heartbeat(client, epoch=2)


def test_full_heartbeat_of_a_member(client):
    joined_consumer(client)
    full = {"rebalance_timeout_ms": 20_000, "owned": ALL, "subscribed_topic_names": ["three"]}
    assert assigned(consumer_heartbeat(client, epoch=1, **full)) == ALL
    assert assigned(consumer_heartbeat(client, epoch=1, **{**full, "owned": {}})) == ALL


def test_member_joins_again(client):
    joined_consumer(client)
    assert join_consumer(client).member_epoch == 1
    response = join_consumer(client, names=["one"])
    assert (response.member_epoch, assigned(response)) == (2, {"one": [0]})
    describe_consumers(client)


@pytest.mark.parametrize("assignor", [None, "uniform", "range"])
def test_two_members_share_partitions(client, assignor):
    fields = {"server_assignor": assignor}
    assert assigned(join_consumer(client, **fields)) == ALL
    second = join_consumer(client, member="b", **fields)
    assert (second.member_epoch, assigned(second)) == (2, {})
    describe_consumers(client)
    assert consumer_heartbeat(client, member="b", epoch=2).error_code == Code.NONE
    first = consumer_heartbeat(client, epoch=1)
    kept = assigned(first)
    assert (first.member_epoch, kept is not None) == (1, True)
    describe_consumers(client)
    consumer_heartbeat(client, epoch=1, owned=ALL)
    assert consumer_heartbeat(client, epoch=1, owned=kept).member_epoch == 2
    describe_consumers(client)
    assert assigned(consumer_heartbeat(client, member="b", epoch=2)) is not None
    describe_consumers(client)
    # The last response may have been lost, and the epoch with it.
    consumer_heartbeat(client, epoch=1, owned=kept)
    consumer_heartbeat(client, epoch=1, owned=ALL)
    consumer_heartbeat(client, epoch=1)
    consumer_heartbeat(client, member="b", epoch=1)


def test_leaving_member_releases_partitions(client):
    joined_consumer(client)
    joined_consumer(client, member="b")
    kept = assigned(consumer_heartbeat(client, epoch=1))
    consumer_heartbeat(client, epoch=1, owned=kept)
    response = consumer_heartbeat(client, epoch=-1)
    assert (response.error_code, response.member_epoch) == (0, -1)
    assert consumer_heartbeat(client, epoch=2).error_code == Code.UNKNOWN_MEMBER_ID
    assert consumer_heartbeat(client, epoch=-1).error_code == Code.UNKNOWN_MEMBER_ID
    response = consumer_heartbeat(client, member="b", epoch=2, owned={})
    assert (response.member_epoch, assigned(response)) == (3, ALL)
    consumer_heartbeat(client, member="b", epoch=-1)
    describe_consumers(client)
    assert join_consumer(client).member_epoch == 5


def test_members_with_several_assignors(client):
    joined_consumer(client, server_assignor="range")
    describe_consumers(client)
    joined_consumer(client, member="b", server_assignor="uniform")
    describe_consumers(client)
    joined_consumer(client, member="c", server_assignor="uniform")
    describe_consumers(client)
    joined_consumer(client, member="d")
    describe_consumers(client)


def test_members_with_several_subscriptions(client):
    joined_consumer(client, names=["one"])
    joined_consumer(client, member="b", names=["three"])
    joined_consumer(client, member="c", names=["none"])
    consumer_heartbeat(client, epoch=1, owned={"one": [0]})
    consumer_heartbeat(client, member="b", epoch=2, owned=ALL)
    describe_consumers(client)


def test_static_member_leaves_and_returns(client):
    fields = {"group_instance_id": "i"}
    assert join_consumer(client, **fields).member_epoch == 1
    assert join_consumer(client, member="b", **fields).error_code == Code.UNRELEASED_INSTANCE_ID
    consumer_heartbeat(client, epoch=1, owned=ALL, group_instance_id="other")
    consumer_heartbeat(client, epoch=1, owned=ALL, member="b", **fields)
    consumer_heartbeat(client, epoch=-2, member="b", **fields)
    response = consumer_heartbeat(client, epoch=-2, **fields)
    assert (response.error_code, response.member_epoch) == (0, -2)
    describe_consumers(client)
    consumer_heartbeat(client, epoch=1, **fields)
    consumer_heartbeat(client, epoch=-2, **fields)
    response = join_consumer(client, member="b", **fields)
    assert (response.member_epoch, assigned(response)) == (1, ALL)
    describe_consumers(client)
    assert consumer_heartbeat(client, epoch=1, **fields).error_code == Code.FENCED_INSTANCE_ID
    assert consumer_heartbeat(client, epoch=1).error_code == Code.UNKNOWN_MEMBER_ID
    consumer_heartbeat(client, epoch=-1, **fields)
    consumer_heartbeat(client, epoch=-1, member="b", group_instance_id="other")
    assert consumer_heartbeat(client, epoch=-1, member="b", **fields).error_code == Code.NONE
    describe_consumers(client)


def test_static_member_returns_with_another_subscription(client):
    fields = {"group_instance_id": "i"}
    join_consumer(client, **fields)
    consumer_heartbeat(client, epoch=-2, **fields)
    response = join_consumer(client, member="b", names=["one"], **fields)
    assert (response.member_epoch, assigned(response)) == (2, {"one": [0]})
    describe_consumers(client)


def test_static_member_returns_with_its_own_id(client):
    fields = {"group_instance_id": "i"}
    join_consumer(client, **fields)
    consumer_heartbeat(client, epoch=-2, **fields)
    join_consumer(client, **fields)
    describe_consumers(client)


def test_dynamic_member_leaves_temporarily(client):
    joined_consumer(client)
    assert consumer_heartbeat(client, epoch=-2).error_code == Code.INVALID_REQUEST
    consumer_heartbeat(client, epoch=-2, group_instance_id="i")
    describe_consumers(client)


@pytest.mark.parametrize("epoch", [-2, -1, 1, 9])
def test_unknown_group(client, epoch):
    consumer_heartbeat(client, epoch=epoch, group_instance_id="i")
    describe_consumers(client)
    commit(client)
    consumer_heartbeat(client, epoch=epoch, group_instance_id="i")
    describe_consumers(client)


@pytest.mark.parametrize("regex", ["(", "*", "[a", "a{2,1}", "(?<n>a)", "(?=a)", r"\1", "a**"])
def test_invalid_regular_expressions(client, regex):
    join_consumer(client, names=None, subscribed_topic_regex=regex)
    describe_consumers(client)


def test_regular_expression_subscription(client):
    """When Kafka resolves the topics, and in how many epochs, is not compared."""
    subscription = {"subscribed_topic_names": [], "subscribed_topic_regex": "thr.*"}
    request = consumer_heartbeat_request(
        client, epoch=0, owned={}, rebalance_timeout_ms=20_000, **subscription
    )
    client.call(
        CONSUMER_GROUP_HEARTBEAT, 1, request, ours=lambda response: with_assignment(response, ALL)
    )
    request.member_epoch = 1
    client.wait_until(
        CONSUMER_GROUP_HEARTBEAT,
        1,
        request,
        lambda response: bool(response.assignment.assigned_partitions),
    )


# --- commits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 5, 8, 9, 10])
def test_commits_of_members(client, version):
    joined_consumer(client)
    commit(client, version, member="a", generation=1, partitions={"three": [0]})
    joined_consumer(client, member="b")
    consumer_heartbeat(client, epoch=1)
    commit(client, version, member="b", generation=1)
    commit(client, version, member="b", generation=3)
    for generation in (-2, -1, 0, 1, 2):
        commit(client, version, member="a", generation=generation)
        commit(client, version, member="unknown", generation=generation)
        commit(client, version, generation=generation)
    fetch(client)
    consumer_heartbeat(client, epoch=-1)
    consumer_heartbeat(client, member="b", epoch=-1)
    commit(client, version)
    commit(client, version, member="a", generation=1)


def unknown_member_response(response):
    """Kafka fails with a bug on an epoch without a member."""
    (group,) = response.groups
    assert group.error_code == Code.UNKNOWN_SERVER_ERROR
    return replace(response, groups=[replace(group, error_code=Code.UNKNOWN_MEMBER_ID)])


@pytest.mark.parametrize("version", [9, 10])
def test_members_fetch_offsets(client, version):
    joined_consumer(client)
    commit(client, member="a", generation=1)
    assert fetched_code(fetch(client, version, member="a", epoch=1)) == Code.NONE
    for epoch in (-2, -1, 0, 2):
        fetch(client, version, member="a", epoch=epoch)
        fetch(client, version, member="unknown", epoch=epoch)
        fetch(client, version, member="", epoch=epoch)
        fetch(client, version, epoch=epoch, ours=None if epoch < 0 else unknown_member_response)
    fetch(client, version, member="a", epoch=7, partitions={"one": [0]})
    fetch(client, 8)
    fetch(client, 1, partitions={"one": [0]})


# --- describing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1])
def test_describe_groups(client, version):
    classic, none = client.group + "-classic", client.group + "-none"
    commit(client, group=classic)
    joined_consumer(client, rack_id="rack", group_instance_id="i", names=["three", "none"])
    describe_consumers(client, version, client.group, classic, none, "")
    request = ConsumerGroupDescribeRequest([client.group, none], include_authorized_operations=True)
    client.call(CONSUMER_GROUP_DESCRIBE, version, request)
    client.call(CONSUMER_GROUP_DESCRIBE, version, ConsumerGroupDescribeRequest())
