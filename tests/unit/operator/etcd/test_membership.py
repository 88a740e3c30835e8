"""Who leaves and who comes: never more than one, and never while another is unwell."""

import pytest
from msgspec.structs import replace

from kafscale.metadata.store.etcd.maintenance import Alarm
from kafscale.operator.etcd.actions import Admit, Disarm, Promote, Remove
from kafscale.operator.etcd.membership import LOST_AFTER_MS, loss, membership
from kafscale.operator.etcd.view import PodView
from unit.operator.etcd.views import OLD, crashing, member, seat, silent, view


def test_a_healthy_cluster_is_left_alone():
    assert membership(view()) is None


@pytest.mark.parametrize(
    ("lost", "reason"),
    [
        (crashing(1), "it does not start: no such file"),
        (silent(1, has_volume=False), "its volume is gone"),
        (silent(1, has_volume=False, pod=None), "its volume is gone"),
        (silent(1, PodView(is_turned_away=True)), "its volume is empty"),
    ],
)
def test_a_member_that_has_lost_its_data_leaves(lost, reason):
    assert membership(view(member(0), lost, member(2))) == Remove(1, 101, reason)


def test_a_member_whose_database_differs_leaves_though_it_answers():
    seen = view(alarms=(Alarm(102, "CORRUPT"),))
    assert membership(seen) == Remove(2, 102, "its database is not like those of the others")


@pytest.mark.parametrize(
    "other",
    [
        silent(2),
        member(2, seat=seat(2, is_learner=True)),
        member(2, status=replace(member(2).status, leader_id=0)),
        member(2, status=replace(member(2).status, member_id=7)),
    ],
)
def test_nobody_leaves_while_another_is_unwell(other):
    action = membership(view(member(0), crashing(1), other))
    assert not isinstance(action, Remove | Admit)


@pytest.mark.parametrize(
    "unwell",
    [
        silent(1),
        silent(1, silent_ms=3_600_000),
        crashing(1, silent_ms=LOST_AFTER_MS - 1),
        silent(1, PodView(is_crashing=True, is_terminating=True), silent_ms=LOST_AFTER_MS),
        silent(1, PodView(is_terminating=True), has_volume=False),
        silent(1, PodView(is_terminating=True, is_turned_away=True)),
        silent(1, PodView(is_turned_away=True), seat=seat(1, client_urls=())),
    ],
)
def test_a_member_that_may_come_back_is_waited_for(unwell):
    seen = view(member(0), unwell, member(2))
    assert loss(seen, unwell) == ""
    assert membership(seen) is None


def test_a_template_that_nobody_lives_with_is_no_loss_of_data():
    broken = crashing(1)
    assert broken.pod
    old = [member(i, pod=replace(member(i).pod, checksum=OLD)) for i in (0, 2)]
    assert membership(view(old[0], broken, old[1])) is None


def test_an_only_member_never_leaves():
    assert membership(view(crashing(0), is_listed=True)) is None


def test_without_a_list_nothing_is_changed():
    assert membership(view(member(0), crashing(1), member(2), is_listed=False)) is None


def test_strangers_stop_all_repairs():
    seen = view(member(0), crashing(1), member(2), strangers=(seat(9),))
    assert membership(seen) is None


def test_one_that_is_not_in_the_list_is_let_in_when_all_others_are_well():
    gone = silent(1, seat=None)
    assert membership(view(member(0), gone, member(2))) == Admit(1)
    assert membership(view(member(0), gone, silent(2))) is None
    assert membership(view(silent(0, seat=None), is_listed=True)) is None


def test_they_come_one_by_one():
    learner = member(1, seat=seat(1, is_learner=True))
    assert membership(view(member(0), silent(1, seat=None), silent(2, seat=None))) == Admit(1)
    assert membership(view(member(0), learner, silent(2, seat=None))) == Promote(1, 101)
    assert membership(view(member(0), member(1), silent(2, seat=None))) == Admit(2)


def test_one_that_was_let_in_and_has_not_started_is_waited_for_and_at_last_replaced():
    added = seat(1, name="", client_urls=(), is_learner=True)
    assert membership(view(member(0), silent(1, seat=added), member(2))) is None
    crashed = membership(view(member(0), crashing(1, seat=added), member(2)))
    assert isinstance(crashed, Remove)


def test_members_that_are_not_wanted_leave_from_the_end():
    assert membership(view(wanted=1)) == Remove(2, 102, "fewer members are wanted")
    assert membership(view(member(0), member(1), silent(2), wanted=1)) is None
    assert membership(view(member(0), wanted=1)) is None


def test_the_alarm_of_one_who_is_gone_is_taken_back():
    old = Alarm(7, "CORRUPT")
    assert membership(view(alarms=(old,))) == Disarm(old)
