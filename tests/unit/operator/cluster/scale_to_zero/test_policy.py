"""When clusters sleep and wake: every case, and that what is not known keeps them awake."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.operator.cluster.scale_to_zero.policy import (
    ASLEEP,
    WAKING,
    Act,
    Sight,
    decide,
    waking_reason,
)

TIRED = {"idle_seconds_min": 60, "idle_seconds": 60.0, "is_settled": True, "is_serving": True}
ASLEEP_NOW = {"idle_seconds_min": 60, "mark": ASLEEP, "mark_generation": "4", "generation": 4}


def act(before, **changes):
    return decide(Sight(**{**before, **changes}))


def test_nobody_there_for_long_enough_sends_it_to_sleep():
    assert act(TIRED) is Act.FALL_ASLEEP


@pytest.mark.parametrize(
    "change",
    [
        {"idle_seconds_min": None},
        {"idle_seconds": 59.9},
        {"idle_seconds": None},
        {"is_settled": False},
        {"is_wished_for": True},
    ],
    ids=str,
)
def test_anything_else_keeps_it_awake(change):
    assert act(TIRED, **change) is Act.STAY_AWAKE


def test_it_sleeps_on_whatever_is_idle():
    assert act(ASLEEP_NOW) is Act.SLEEP_ON
    assert act(ASLEEP_NOW, is_serving=True, idle_seconds=0.0) is Act.SLEEP_ON


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"is_called": True}, "client"),
        ({"is_wished_for": True}, "kafscale.io/wake"),
        ({"idle_seconds_min": None}, "no longer"),
        ({"generation": 5}, "changed"),
    ],
    ids=str,
)
def test_it_wakes_for_a_reason(change, reason):
    assert act(ASLEEP_NOW, **change) is Act.WAKE
    assert reason in waking_reason(Sight(**{**ASLEEP_NOW, **change}))


def test_it_wakes_until_a_broker_serves():
    waking = ASLEEP_NOW | {"mark": WAKING}
    assert act(waking) is Act.GO_ON_WAKING
    assert act(waking, is_called=True, generation=9) is Act.GO_ON_WAKING
    assert act(waking, is_serving=True) is Act.BE_AWAKE


@given(st.builds(Sight))
def test_nothing_sleeps_that_may_not(sight):
    if sight.idle_seconds_min is None:
        assert decide(sight) not in {Act.FALL_ASLEEP, Act.SLEEP_ON}
