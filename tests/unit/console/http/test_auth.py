"""The limit of failed logins."""

import pytest

from kafscale.console.http.auth import (
    ADDRESSES_MAX,
    FAILURES_MAX,
    FAILURES_TOTAL_MAX,
    WINDOW_SECONDS,
    LoginThrottle,
)

ADDRESS, OTHER_ADDRESS = "10.0.0.1", "10.0.0.2"


@pytest.fixture
def throttle():
    return LoginThrottle()


def test_too_many_failures_of_an_address_are_throttled(throttle):
    for second in range(FAILURES_MAX):
        assert throttle.wait_seconds(ADDRESS, second) == 0
        throttle.failed(ADDRESS, second)
    assert throttle.wait_seconds(ADDRESS, FAILURES_MAX) == WINDOW_SECONDS - FAILURES_MAX
    assert throttle.wait_seconds(OTHER_ADDRESS, FAILURES_MAX) == 0
    assert throttle.wait_seconds(ADDRESS, WINDOW_SECONDS - 0.5) == 1
    assert throttle.wait_seconds(ADDRESS, WINDOW_SECONDS) == 0


def test_window_slides(throttle):
    for second in range(FAILURES_MAX):
        throttle.failed(ADDRESS, second * 10)
    throttle.failed(ADDRESS, WINDOW_SECONDS)
    assert throttle.wait_seconds(ADDRESS, WINDOW_SECONDS) == 10


def test_success_resets_the_failures(throttle):
    for _ in range(FAILURES_MAX):
        throttle.failed(ADDRESS, 0)
    throttle.succeeded(ADDRESS)
    assert throttle.wait_seconds(ADDRESS, 0) == 0


def test_failures_of_all_addresses_are_limited(throttle):
    for number in range(FAILURES_TOTAL_MAX):
        throttle.failed(f"10.1.{number // 250}.{number % 250}", 0)
    assert throttle.wait_seconds(ADDRESS, 1) == WINDOW_SECONDS - 1
    assert throttle.wait_seconds(ADDRESS, WINDOW_SECONDS) == 0


def test_ipv6_addresses_count_by_network(throttle):
    for number in range(FAILURES_MAX):
        throttle.failed(f"2001:db8::{number}", 0)
    assert throttle.wait_seconds("2001:db8::ffff", 0) > 0
    assert throttle.wait_seconds("2001:db8:0:1::1", 0) == 0


def test_memory_is_bounded(throttle):
    for number in range(ADDRESSES_MAX + 100):
        throttle.failed(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", number)
    assert len(throttle._by_address) == ADDRESSES_MAX
    assert len(throttle._all) == FAILURES_TOTAL_MAX
