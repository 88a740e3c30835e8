"""Databases are made smaller where it is worth it, one at a time, the leader's last."""

import pytest

from kafscale.metadata.store.etcd.maintenance import Alarm
from kafscale.operator.etcd.actions import Defragment, MakeRoom
from kafscale.operator.etcd.defragmentation import SIZE_BYTES_MIN, defragmentation, room
from unit.operator.etcd.views import member, seat, silent, status, view

LARGE = {"database_bytes": SIZE_BYTES_MIN + 2, "database_used_bytes": SIZE_BYTES_MIN // 2}


def large(index, **more):
    return member(index, status=status(index, **(LARGE | more)))


def test_a_follower_comes_before_the_leader():
    assert defragmentation(view(large(0), large(1), large(2))) == Defragment(1)
    assert defragmentation(view(large(0), member(1), member(2))) == Defragment(0)


@pytest.mark.parametrize(
    "other",
    [
        large(2, database_bytes=SIZE_BYTES_MIN),
        large(2, database_used_bytes=SIZE_BYTES_MIN // 2 + 1),
        member(2),
    ],
)
def test_what_is_small_or_in_use_is_left_alone(other):
    assert defragmentation(view(member(0), member(1), other)) is None


def test_all_have_to_be_well_and_it_has_to_be_wanted():
    assert defragmentation(view(member(0), large(1), silent(2))) is None
    assert defragmentation(view(member(0), large(1), member(2), defragments=False)) is None


def test_a_member_that_is_full_is_given_room_even_if_another_is_away():
    full = Alarm(101, "NOSPACE")
    assert room(view()) is None
    assert room(view(member(0), member(1), silent(2), alarms=(full,))) == MakeRoom((full,), (1,))
    assert room(view(silent(0), member(1), silent(2), alarms=(full,))) is None
    assert room(view(alarms=(Alarm(101, "CORRUPT"),))) is None


def test_the_alarm_of_one_who_is_gone_is_taken_back_too_for_it_stops_everybody():
    old = Alarm(7, "NOSPACE")
    assert room(view(alarms=(old,))) == MakeRoom((old,), ())


def test_all_who_are_full_are_given_room_the_leader_last():
    alarms = tuple(Alarm(100 + index, "NOSPACE") for index in range(3))
    assert room(view(alarms=alarms)) == MakeRoom(alarms, (1, 2, 0))
    assert room(view(member(0), member(1, seat=seat(1, is_learner=True)), alarms=alarms))
