"""Members of consumer groups: how they join, follow, leave, and are refused."""

import pytest
from msgspec.structs import replace

from conformance.groups.codes import Code
from conformance.groups.consumer import (
    assigned,
    beat,
    beat_request,
    consumer,
    describe_consumers,
    enter,
    having,
)
from conformance.groups.offsets import commit, fetch, fetched_code
from conformance.groups.operations import without_configs
from conformance.groups.servers import START_S_MAX
from kafscale.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from kafscale.protocol.messages.consumer_group_heartbeat import CONSUMER_GROUP_HEARTBEAT

pytestmark = pytest.mark.timeout(START_S_MAX)

ALL = {"three": [0, 1, 2]}


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_and_stays(talk, version):
    answer = enter(talk, version)
    assert (answer.member_epoch, assigned(answer)) == (1, ALL)
    describe_consumers(talk, version)
    answer = beat(talk, version, epoch=1)
    assert (answer.member_epoch, assigned(answer)) == (1, None)
    answer = beat(talk, version, epoch=1, owned=ALL)
    assert (answer.member_epoch, assigned(answer)) == (1, None)
    describe_consumers(talk, version)


def test_an_id_that_the_coordinator_makes(talk):
    answer = enter(talk, 0, member="")
    assert answer.member_id == "#1"
    assert beat(talk, 0, member="#1", epoch=1).error_code == Code.NONE
    assert enter(talk, 1, member="").error_code == Code.INVALID_REQUEST


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    "said",
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
def test_what_a_member_may_say_when_it_joins(talk, version, said):
    said = {name.replace("instance", "group_instance_id"): it for name, it in said.items()}
    enter(talk, version, **said)
    if "group" not in said:
        describe_consumers(talk)


@pytest.mark.parametrize(
    "said",
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
        {"member": "nobody"},
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
def test_what_a_member_may_say_later(talk, said):
    consumer(talk)
    beat(talk, **{"epoch": 1, **said})
    describe_consumers(talk)
    beat(talk, epoch=1)
    beat(talk, epoch=2)


def test_a_member_says_everything_again(talk):
    consumer(talk)
    full = {"rebalance_timeout_ms": 20_000, "owned": ALL, "subscribed_topic_names": ["three"]}
    assert assigned(beat(talk, epoch=1, **full)) == ALL
    assert assigned(beat(talk, epoch=1, **{**full, "owned": {}})) == ALL


def test_a_member_joins_again(talk):
    consumer(talk)
    assert enter(talk).member_epoch == 1
    answer = enter(talk, names=["one"])
    assert (answer.member_epoch, assigned(answer)) == (2, {"one": [0]})
    describe_consumers(talk)


@pytest.mark.parametrize("assignor", [None, "uniform", "range"])
def test_two_members_share(talk, assignor):
    said = {"server_assignor": assignor}
    assert assigned(enter(talk, **said)) == ALL
    second = enter(talk, member="b", **said)
    assert (second.member_epoch, assigned(second)) == (2, {})
    describe_consumers(talk)
    assert beat(talk, member="b", epoch=2).error_code == Code.NONE
    first = beat(talk, epoch=1)
    kept = assigned(first)
    assert (first.member_epoch, kept is not None) == (1, True)
    describe_consumers(talk)
    beat(talk, epoch=1, owned=ALL)
    assert beat(talk, epoch=1, owned=kept).member_epoch == 2
    describe_consumers(talk)
    assert assigned(beat(talk, member="b", epoch=2)) is not None
    describe_consumers(talk)
    # What was told last may have been lost, and the epoch with it.
    beat(talk, epoch=1, owned=kept)
    beat(talk, epoch=1, owned=ALL)
    beat(talk, epoch=1)
    beat(talk, member="b", epoch=1)


def test_who_leaves_makes_room(talk):
    consumer(talk)
    consumer(talk, member="b")
    kept = assigned(beat(talk, epoch=1))
    beat(talk, epoch=1, owned=kept)
    answer = beat(talk, epoch=-1)
    assert (answer.error_code, answer.member_epoch) == (0, -1)
    assert beat(talk, epoch=2).error_code == Code.UNKNOWN_MEMBER_ID
    assert beat(talk, epoch=-1).error_code == Code.UNKNOWN_MEMBER_ID
    answer = beat(talk, member="b", epoch=2, owned={})
    assert (answer.member_epoch, assigned(answer)) == (3, ALL)
    beat(talk, member="b", epoch=-1)
    describe_consumers(talk)
    assert enter(talk).member_epoch == 5


def test_members_with_several_assignors(talk):
    consumer(talk, server_assignor="range")
    describe_consumers(talk)
    consumer(talk, member="b", server_assignor="uniform")
    describe_consumers(talk)
    consumer(talk, member="c", server_assignor="uniform")
    describe_consumers(talk)
    consumer(talk, member="d")
    describe_consumers(talk)


def test_members_with_several_wishes(talk):
    consumer(talk, names=["one"])
    consumer(talk, member="b", names=["three"])
    consumer(talk, member="c", names=["none"])
    beat(talk, epoch=1, owned={"one": [0]})
    beat(talk, member="b", epoch=2, owned=ALL)
    describe_consumers(talk)


def test_a_static_member_goes_and_returns(talk):
    said = {"group_instance_id": "i"}
    assert enter(talk, **said).member_epoch == 1
    assert enter(talk, member="b", **said).error_code == Code.UNRELEASED_INSTANCE_ID
    beat(talk, epoch=1, owned=ALL, group_instance_id="other")
    beat(talk, epoch=1, owned=ALL, member="b", **said)
    beat(talk, epoch=-2, member="b", **said)
    answer = beat(talk, epoch=-2, **said)
    assert (answer.error_code, answer.member_epoch) == (0, -2)
    describe_consumers(talk)
    beat(talk, epoch=1, **said)
    beat(talk, epoch=-2, **said)
    answer = enter(talk, member="b", **said)
    assert (answer.member_epoch, assigned(answer)) == (1, ALL)
    describe_consumers(talk)
    assert beat(talk, epoch=1, **said).error_code == Code.FENCED_INSTANCE_ID
    assert beat(talk, epoch=1).error_code == Code.UNKNOWN_MEMBER_ID
    beat(talk, epoch=-1, **said)
    beat(talk, epoch=-1, member="b", group_instance_id="other")
    assert beat(talk, epoch=-1, member="b", **said).error_code == Code.NONE
    describe_consumers(talk)


def test_a_static_member_returns_with_another_wish(talk):
    said = {"group_instance_id": "i"}
    enter(talk, **said)
    beat(talk, epoch=-2, **said)
    answer = enter(talk, member="b", names=["one"], **said)
    assert (answer.member_epoch, assigned(answer)) == (2, {"one": [0]})
    describe_consumers(talk)


def test_a_static_member_returns_under_its_own_id(talk):
    said = {"group_instance_id": "i"}
    enter(talk, **said)
    beat(talk, epoch=-2, **said)
    enter(talk, **said)
    describe_consumers(talk)


def test_a_dynamic_member_leaves_for_a_while(talk):
    consumer(talk)
    assert beat(talk, epoch=-2).error_code == Code.INVALID_REQUEST
    beat(talk, epoch=-2, group_instance_id="i")
    describe_consumers(talk)


@pytest.mark.parametrize("epoch", [-2, -1, 1, 9])
def test_a_group_that_is_not_there(talk, epoch):
    beat(talk, epoch=epoch, group_instance_id="i")
    describe_consumers(talk)
    commit(talk)
    beat(talk, epoch=epoch, group_instance_id="i")
    describe_consumers(talk)


@pytest.mark.parametrize("regex", ["(", "*", "[a", "a{2,1}", "(?<n>a)", "(?=a)", r"\1", "a**"])
def test_expressions_that_are_none(talk, regex):
    enter(talk, names=None, subscribed_topic_regex=regex)
    describe_consumers(talk)


def test_an_expression_leads_to_topics(talk):
    """When Kafka looks for the topics is its own affair, and so is how many epochs that takes."""
    wish = {"subscribed_topic_names": [], "subscribed_topic_regex": "thr.*"}
    request = beat_request(talk, epoch=0, owned={}, rebalance_timeout_ms=20_000, **wish)
    talk.call(CONSUMER_GROUP_HEARTBEAT, 1, request, ours=lambda answer: having(answer, ALL))
    request.member_epoch = 1
    talk.wait_until(
        CONSUMER_GROUP_HEARTBEAT,
        1,
        request,
        lambda answer: bool(answer.assignment.assigned_partitions),
    )


# --- commits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 5, 8, 9, 10])
def test_commits_of_members(talk, version):
    consumer(talk)
    commit(talk, version, member="a", generation=1, places={"three": [0]})
    consumer(talk, member="b")
    beat(talk, epoch=1)
    commit(talk, version, member="b", generation=1)
    commit(talk, version, member="b", generation=3)
    for generation in (-2, -1, 0, 1, 2):
        commit(talk, version, member="a", generation=generation)
        commit(talk, version, member="nobody", generation=generation)
        commit(talk, version, generation=generation)
    fetch(talk)
    beat(talk, epoch=-1)
    beat(talk, member="b", epoch=-1)
    commit(talk, version)
    commit(talk, version, member="a", generation=1)


def unknown_nobody(answer):
    """Kafka fails with a bug of its own on an epoch without a member."""
    (group,) = answer.groups
    assert group.error_code == Code.UNKNOWN_SERVER_ERROR
    return replace(answer, groups=[replace(group, error_code=Code.UNKNOWN_MEMBER_ID)])


@pytest.mark.parametrize("version", [9, 10])
def test_members_ask_for_their_offsets(talk, version):
    consumer(talk)
    commit(talk, member="a", generation=1)
    assert fetched_code(fetch(talk, version, member="a", epoch=1)) == Code.NONE
    for epoch in (-2, -1, 0, 2):
        fetch(talk, version, member="a", epoch=epoch)
        fetch(talk, version, member="nobody", epoch=epoch)
        fetch(talk, version, member="", epoch=epoch)
        fetch(talk, version, epoch=epoch, ours=None if epoch < 0 else unknown_nobody)
    fetch(talk, version, member="a", epoch=7, places={"one": [0]})
    fetch(talk, 8)
    fetch(talk, 1, places={"one": [0]})


# --- describing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1])
def test_groups_are_described(talk, version):
    classic, none = talk.group + "-classic", talk.group + "-none"
    commit(talk, group=classic)
    consumer(talk, rack_id="rack", group_instance_id="i", names=["three", "none"])
    describe_consumers(talk, version, talk.group, classic, none, "")
    request = ConsumerGroupDescribeRequest([talk.group, none], include_authorized_operations=True)
    talk.call(CONSUMER_GROUP_DESCRIBE, version, request, ours=without_configs)
    talk.call(CONSUMER_GROUP_DESCRIBE, version, ConsumerGroupDescribeRequest())
