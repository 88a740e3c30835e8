"""Which assignor is used, and what it is given to go by."""

import pytest

from kafscale.groups.config import GroupSettings
from kafscale.groups.consumer.member import Member
from kafscale.groups.consumer.member_metadata import Profile
from kafscale.groups.consumer.subscriptions import Catalogue
from kafscale.groups.consumer.target_assignment import ASSIGNORS, chosen_assignor, targets
from unit.groups.consumer.driver import facts, parts

OFFERED = ("uniform", "range")


def member(name, target=None, **profile):
    profile = Profile(names=frozenset({"x", "y"}), **profile)
    return Member(member_id=name, profile=profile, target=target or {})


def asking(*assignors):
    return [member(f"m{index}", server_assignor=name) for index, name in enumerate(assignors)]


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        ([], "uniform"),
        ([None, None], "uniform"),
        (["range", None, None], "range"),
        (["range", "uniform", "range"], "range"),
        (["range", "uniform"], "uniform"),
        (["was-once-offered", "was-once-offered", "range"], "range"),
    ],
)
def test_the_majority_of_those_who_ask_decides(asked, chosen):
    assert chosen_assignor(asking(*asked), OFFERED) == chosen


def test_all_that_is_offered_by_default_exists():
    assert set(GroupSettings().consumer_assignors) <= ASSIGNORS.keys()


def test_uniform_keeps_earlier_targets_and_range_does_not():
    group = [member("a"), member("b", target=parts(x=(0, 1)))]
    catalogue = Catalogue(facts(x=2, y=2))
    assert targets(group, catalogue, "uniform") == {"a": parts(y=(0, 1)), "b": parts(x=(0, 1))}
    assert targets(group, catalogue, "range") == {
        "a": parts(x=(0,), y=(0,)),
        "b": parts(x=(1,), y=(1,)),
    }


def test_range_puts_static_members_first():
    group = [member("a"), member("b", instance_id="i")]
    made = targets(group, Catalogue(facts(x=1)), "range")
    assert made == {"a": {}, "b": parts(x=(0,))}
