"""The limit of failed logins: attempts are held after failures, and take turns."""

import pytest

from kafscale.console.http.login_throttle import (
    ADDRESSES_MAX,
    FAILURES_MAX,
    FAILURES_TOTAL_MAX,
    HOLD_SECONDS_MAX,
    TOTAL_TURN_SECONDS,
    TURN_SECONDS,
    WINDOW_SECONDS,
    LoginThrottle,
)

ADDRESS, OTHER_ADDRESS = "10.0.0.1", "10.0.0.2"


@pytest.fixture
def throttle():
    return LoginThrottle()


def fail(throttle, address=ADDRESS, count=FAILURES_MAX, now=0.0):
    for _ in range(count):
        assert throttle.begin(address, now) == 0
        throttle.failed(address, now)


def test_attempts_of_an_address_take_turns_after_failures(throttle):
    fail(throttle)
    held = [throttle.begin(ADDRESS, 0) for _ in range(6)]
    assert held == [TURN_SECONDS * turn for turn in range(1, 6)] + [None]
    assert throttle.begin(OTHER_ADDRESS, 0) == 0
    assert throttle.begin(ADDRESS, TURN_SECONDS) == HOLD_SECONDS_MAX
    assert throttle.begin(ADDRESS, TURN_SECONDS) is None


def test_failures_are_forgotten_after_the_window(throttle):
    fail(throttle)
    assert throttle.begin(ADDRESS, WINDOW_SECONDS - 1) == TURN_SECONDS
    assert throttle.begin(ADDRESS, WINDOW_SECONDS) == 0


def test_success_resets_the_failures(throttle):
    fail(throttle)
    throttle.succeeded(ADDRESS)
    assert throttle.begin(ADDRESS, 0) == 0


def test_failures_of_all_addresses_are_limited(throttle):
    for number in range(FAILURES_TOTAL_MAX):
        fail(throttle, f"10.1.{number // 250}.{number % 250}", 1)
    assert throttle.begin(ADDRESS, 1) == TOTAL_TURN_SECONDS
    assert throttle.begin(OTHER_ADDRESS, 1) == 2 * TOTAL_TURN_SECONDS
    assert throttle.begin(ADDRESS, WINDOW_SECONDS) == 0


def test_ipv6_addresses_count_by_network(throttle):
    for number in range(FAILURES_MAX):
        fail(throttle, f"2001:db8::{number}", 1)
    assert throttle.begin("2001:db8::ffff", 0) == TURN_SECONDS
    assert throttle.begin("2001:db8:0:1::1", 0) == 0


def test_memory_is_bounded(throttle):
    for number in range(ADDRESSES_MAX + 100):
        throttle.failed(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", number)
    assert len(throttle._by_address) == ADDRESSES_MAX
    assert len(throttle._all.failures) == FAILURES_TOTAL_MAX
