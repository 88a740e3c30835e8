"""The sliding window of store health."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.storage.objects.store_health import HealthState, HealthWindow


def window(**changes: float) -> HealthWindow:
    settings: dict[str, float] = {
        "window_ms": 60_000,
        "latency_warn_ms": 500,
        "latency_crit_ms": 3000,
        "error_rate_warn": 0.2,
        "error_rate_crit": 0.6,
    }
    return HealthWindow(**{**settings, **changes})  # type: ignore[arg-type]


def fill(health: HealthWindow, now_ms: int, count: int, *, failed: int = 0, latency_ms: float = 1):
    for number in range(count):
        health.record(now_ms, latency_ms, failed=number < failed)


def test_store_without_requests_is_healthy():
    health = window()
    assert health.state(0) is HealthState.HEALTHY
    assert health.error_rate(0) == 0
    assert health.latency_ms_mean(0) == 0


@pytest.mark.parametrize(
    ("failed", "state"),
    [(0, "healthy"), (1, "healthy"), (2, "degraded"), (5, "degraded"), (6, "unavailable")],
)
def test_error_rate_determines_the_state(failed, state):
    health = window()
    fill(health, 1000, 10, failed=failed)
    assert health.state(1000).value == state
    assert health.error_rate(1000) == failed / 10


@pytest.mark.parametrize(
    ("latency_ms", "state"),
    [(499, "healthy"), (500, "degraded"), (2999, "degraded"), (3000, "unavailable")],
)
def test_mean_latency_determines_the_state(latency_ms, state):
    health = window()
    fill(health, 1000, 10, latency_ms=latency_ms)
    assert health.state(1000).value == state
    assert health.latency_ms_mean(1000) == latency_ms


def test_few_requests_count_as_healthy():
    health = window(requests_min=5)
    fill(health, 1000, 4, failed=4, latency_ms=9000)
    assert health.state(1000) is HealthState.HEALTHY
    fill(health, 1000, 1, failed=1)
    assert health.state(1000) is HealthState.UNAVAILABLE


def test_failures_leave_the_window():
    health = window()
    fill(health, 1000, 10, failed=10)
    fill(health, 31_000, 10)
    assert health.state(60_000) is HealthState.DEGRADED
    assert health.state(61_999) is HealthState.HEALTHY
    assert health.error_rate(61_999) == 0
    assert health.error_rate(200_000) == 0


def test_clear_forgets_failures():
    health = window()
    fill(health, 1000, 10, failed=10)
    health.clear()
    assert health.state(1000) is HealthState.HEALTHY


def test_clock_that_moves_back_loses_nothing():
    health = window()
    fill(health, 50_000, 5, failed=5)
    fill(health, 40_000, 5)
    assert health.error_rate(50_000) == 0.5


def test_memory_is_bounded_by_the_window():
    health = window(window_ms=10_000)
    chance = random.Random(1)
    for now_ms in range(0, 1_000_000, 7):
        health.record(now_ms, chance.random(), failed=False)
        assert len(health._buckets) <= 11


@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 5_000), st.booleans()), min_size=1))
def test_totals_are_those_of_the_window(requests):
    health = window(window_ms=10_000)
    now_ms = 0
    history = []
    for pause_ms, latency_ms, failed in requests:
        now_ms += pause_ms
        history.append((now_ms // 1000, latency_ms, failed))
        health.record(now_ms, latency_ms, failed=failed)
        within = [past for past in history if past[0] > (now_ms - 10_000) // 1000]
        assert health.error_rate(now_ms) == sum(past[2] for past in within) / len(within)
        assert health.latency_ms_mean(now_ms) == sum(past[1] for past in within) / len(within)
