"""Tests of membership changes: one at a time, and only while all others are healthy."""

import pytest
from msgspec.structs import replace

from kafscale.metadata.store.etcd.maintenance import Alarm
from kafscale.operator.etcd.membership import (
    LOST_AFTER_MS,
    AddMember,
    DisarmAlarm,
    PromoteMember,
    RemoveMember,
    data_loss_reason,
    membership,
)
from kafscale.operator.etcd.view import PodView
from unit.operator.etcd.views import OLD, crashing, entry, member, unresponsive, view


def test_a_healthy_cluster_is_left_alone():
    assert membership(view()) is None


@pytest.mark.parametrize(
    ("lost", "reason"),
    [
        (crashing(1), "it does not start: no such file"),
        (unresponsive(1, has_volume=False), "its volume is gone"),
        (unresponsive(1, has_volume=False, pod=None), "its volume is gone"),
        (unresponsive(1, PodView(is_missing_data=True)), "its volume is empty"),
    ],
)
def test_member_without_data_is_removed(lost, reason):
    assert membership(view(member(0), lost, member(2))) == RemoveMember(1, 101, reason)


def test_corrupt_member_is_removed_although_it_responds():
    state = view(alarms=(Alarm(102, "CORRUPT"),))
    assert membership(state) == RemoveMember(
        2, 102, "its database differs from those of the other members"
    )


@pytest.mark.parametrize(
    "other",
    [
        unresponsive(2),
        member(2, entry=entry(2, is_learner=True)),
        member(2, status=replace(member(2).status, leader_id=0)),
        member(2, status=replace(member(2).status, member_id=7)),
    ],
)
def test_no_member_is_removed_while_another_is_unhealthy(other):
    action = membership(view(member(0), crashing(1), other))
    assert not isinstance(action, RemoveMember | AddMember)


@pytest.mark.parametrize(
    "unhealthy",
    [
        unresponsive(1),
        unresponsive(1, unresponsive_ms=3_600_000),
        crashing(1, unresponsive_ms=LOST_AFTER_MS - 1),
        unresponsive(
            1, PodView(is_crashing=True, is_terminating=True), unresponsive_ms=LOST_AFTER_MS
        ),
        unresponsive(1, PodView(is_terminating=True), has_volume=False),
        unresponsive(1, PodView(is_terminating=True, is_missing_data=True)),
        unresponsive(1, PodView(is_missing_data=True), entry=entry(1, client_urls=())),
    ],
)
def test_member_that_may_recover_is_kept(unhealthy):
    state = view(member(0), unhealthy, member(2))
    assert data_loss_reason(state, unhealthy) == ""
    assert membership(state) is None


def test_broken_template_is_not_taken_for_data_loss():
    broken = crashing(1)
    assert broken.pod
    old = [member(i, pod=replace(member(i).pod, checksum=OLD)) for i in (0, 2)]
    assert membership(view(old[0], broken, old[1])) is None


def test_single_member_is_never_removed():
    assert membership(view(crashing(0), has_member_list=True)) is None


def test_no_change_without_a_member_list():
    assert membership(view(member(0), crashing(1), member(2), has_member_list=False)) is None


def test_unknown_members_stop_all_repairs():
    state = view(member(0), crashing(1), member(2), unknown_members=(entry(9),))
    assert membership(state) is None


def test_missing_member_is_added_if_all_others_are_healthy():
    gone = unresponsive(1, entry=None)
    assert membership(view(member(0), gone, member(2))) == AddMember(1)
    assert membership(view(member(0), gone, unresponsive(2))) is None
    assert membership(view(unresponsive(0, entry=None), has_member_list=True)) is None


def test_members_are_added_one_at_a_time():
    learner = member(1, entry=entry(1, is_learner=True))
    assert membership(
        view(member(0), unresponsive(1, entry=None), unresponsive(2, entry=None))
    ) == AddMember(1)
    assert membership(view(member(0), learner, unresponsive(2, entry=None))) == PromoteMember(
        1, 101
    )
    assert membership(view(member(0), member(1), unresponsive(2, entry=None))) == AddMember(2)


def test_added_member_that_does_not_start_is_replaced_eventually():
    added = entry(1, name="", client_urls=(), is_learner=True)
    assert membership(view(member(0), unresponsive(1, entry=added), member(2))) is None
    crashed = membership(view(member(0), crashing(1, entry=added), member(2)))
    assert isinstance(crashed, RemoveMember)


def test_surplus_members_are_removed_from_the_end():
    assert membership(view(desired=1)) == RemoveMember(2, 102, "fewer members are desired")
    assert membership(view(member(0), member(1), unresponsive(2), desired=1)) is None
    assert membership(view(member(0), desired=1)) is None


def test_alarm_of_a_removed_member_is_disarmed():
    old = Alarm(7, "CORRUPT")
    assert membership(view(alarms=(old,))) == DisarmAlarm(old)
