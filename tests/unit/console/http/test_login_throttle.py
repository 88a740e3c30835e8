"""How often one may guess."""

import pytest

from kafscale.console.http.login_throttle import (
    ADDRESSES_MAX,
    FAILURES_MAX,
    FAILURES_TOTAL_MAX,
    WINDOW_SECONDS,
    Throttle,
)

HERE, THERE = "10.0.0.1", "10.0.0.2"


@pytest.fixture
def throttle():
    return Throttle()


def test_a_few_failures_are_forgiven_and_more_are_not(throttle):
    for second in range(FAILURES_MAX):
        assert throttle.wait_seconds(HERE, second) == 0
        throttle.failed(HERE, second)
    assert throttle.wait_seconds(HERE, FAILURES_MAX) == WINDOW_SECONDS - FAILURES_MAX
    assert throttle.wait_seconds(THERE, FAILURES_MAX) == 0
    assert throttle.wait_seconds(HERE, WINDOW_SECONDS - 0.5) == 1
    assert throttle.wait_seconds(HERE, WINDOW_SECONDS) == 0


def test_the_window_slides(throttle):
    for second in range(FAILURES_MAX):
        throttle.failed(HERE, second * 10)
    throttle.failed(HERE, WINDOW_SECONDS)
    assert throttle.wait_seconds(HERE, WINDOW_SECONDS) == 10


def test_who_gets_in_begins_anew(throttle):
    for _ in range(FAILURES_MAX):
        throttle.failed(HERE, 0)
    throttle.succeeded(HERE)
    assert throttle.wait_seconds(HERE, 0) == 0


def test_guessing_from_many_addresses_is_bounded_as_well(throttle):
    for number in range(FAILURES_TOTAL_MAX):
        throttle.failed(f"10.1.{number // 250}.{number % 250}", 0)
    assert throttle.wait_seconds(HERE, 1) == WINDOW_SECONDS - 1
    assert throttle.wait_seconds(HERE, WINDOW_SECONDS) == 0


def test_all_addresses_of_a_network_of_ipv6_count_as_one(throttle):
    for number in range(FAILURES_MAX):
        throttle.failed(f"2001:db8::{number}", 0)
    assert throttle.wait_seconds("2001:db8::ffff", 0) > 0
    assert throttle.wait_seconds("2001:db8:0:1::1", 0) == 0


def test_what_is_remembered_is_bounded(throttle):
    for number in range(ADDRESSES_MAX + 100):
        throttle.failed(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", number)
    assert len(throttle._by_place) == ADDRESSES_MAX
    assert len(throttle._all) == FAILURES_TOTAL_MAX
