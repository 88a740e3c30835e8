"""Tests of the scale-to-zero decision: every case, and that unknown values keep brokers running."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.operator.cluster.scale_to_zero.policy import (
    AT_ZERO,
    WAKING,
    Action,
    Observation,
    decide,
    wake_reason,
)

IDLE = {"idle_seconds_min": 60, "idle_seconds": 60.0, "is_stable": True, "is_serving": True}
STOPPED = {
    "idle_seconds_min": 60,
    "recorded_state": AT_ZERO,
    "recorded_generation": "4",
    "generation": 4,
}


def action(before, **changes):
    return decide(Observation(**{**before, **changes}))


def test_idle_cluster_scales_to_zero():
    assert action(IDLE) is Action.SCALE_TO_ZERO


@pytest.mark.parametrize(
    "change",
    [
        {"idle_seconds_min": None},
        {"idle_seconds": 59.9},
        {"idle_seconds": None},
        {"is_stable": False},
        {"is_wake_requested": True},
    ],
    ids=str,
)
def test_any_other_state_keeps_it_running(change):
    assert action(IDLE, **change) is Action.STAY_RUNNING


def test_cluster_stays_at_zero_without_a_reason_to_wake():
    assert action(STOPPED) is Action.STAY_AT_ZERO
    assert action(STOPPED, is_serving=True, idle_seconds=0.0) is Action.STAY_AT_ZERO


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"is_client_waiting": True}, "client"),
        ({"is_wake_requested": True}, "kafscale.io/wake"),
        ({"idle_seconds_min": None}, "disabled"),
        ({"generation": 5}, "changed"),
    ],
    ids=str,
)
def test_cluster_wakes_for_a_reason(change, reason):
    assert action(STOPPED, **change) is Action.WAKE
    assert reason in wake_reason(Observation(**{**STOPPED, **change}))


def test_waking_continues_until_a_broker_serves():
    waking = STOPPED | {"recorded_state": WAKING}
    assert action(waking) is Action.CONTINUE_WAKING
    assert action(waking, is_client_waiting=True, generation=9) is Action.CONTINUE_WAKING
    assert action(waking, is_serving=True) is Action.FINISH_WAKING


@given(st.builds(Observation))
def test_disabled_scale_to_zero_never_stops_brokers(observation):
    if observation.idle_seconds_min is None:
        assert decide(observation) not in {Action.SCALE_TO_ZERO, Action.STAY_AT_ZERO}
