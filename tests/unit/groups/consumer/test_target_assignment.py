"""Which assignor is used, and its input."""

import pytest

from kafscale.groups.consumer.member import Member
from kafscale.groups.consumer.member_metadata import MemberMetadata
from kafscale.groups.consumer.subscriptions import TopicSubscriptions
from kafscale.groups.consumer.target_assignment import ASSIGNORS, compute_targets, select_assignor
from kafscale.groups.group import GroupSettings
from unit.groups.consumer.driver import partitions, topic_infos

OFFERED = ("uniform", "range")


def member(name, target=None, **metadata):
    metadata = MemberMetadata(names=frozenset({"x", "y"}), **metadata)
    return Member(member_id=name, metadata=metadata, target=target or {})


def asking(*assignors):
    return [member(f"m{index}", server_assignor=name) for index, name in enumerate(assignors)]


@pytest.mark.parametrize(
    ("requested", "chosen"),
    [
        ([], "uniform"),
        ([None, None], "uniform"),
        (["range", None, None], "range"),
        (["range", "uniform", "range"], "range"),
        (["range", "uniform"], "uniform"),
        (["was-once-offered", "was-once-offered", "range"], "range"),
    ],
)
def test_select_assignor_by_majority(requested, chosen):
    assert select_assignor(asking(*requested), OFFERED) == chosen


def test_default_assignors_exist():
    assert set(GroupSettings().consumer_assignors) <= ASSIGNORS.keys()


def test_uniform_keeps_earlier_targets_and_range_does_not():
    group = [member("a"), member("b", target=partitions(x=(0, 1)))]
    subscriptions = TopicSubscriptions(topic_infos(x=2, y=2))
    assert compute_targets(group, subscriptions, "uniform") == {
        "a": partitions(y=(0, 1)),
        "b": partitions(x=(0, 1)),
    }
    assert compute_targets(group, subscriptions, "range") == {
        "a": partitions(x=(0,), y=(0,)),
        "b": partitions(x=(1,), y=(1,)),
    }


def test_range_puts_static_members_first():
    group = [member("a"), member("b", instance_id="i")]
    created = compute_targets(group, TopicSubscriptions(topic_infos(x=1)), "range")
    assert created == {"a": {}, "b": partitions(x=(0,))}
