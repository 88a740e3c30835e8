"""The token bucket: a client that waits as returned uses at most the rate."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.aio.token_bucket import TokenBucket

WAIT_SECONDS_MAX = 60


def test_burst_is_free_and_more_must_wait():
    bucket = TokenBucket(100, wait_seconds_max=WAIT_SECONDS_MAX)
    assert bucket.consume(100, 0) == 0
    assert bucket.consume(50, 0) == 0.5
    assert bucket.debt_seconds(0.25) == 0.25
    assert bucket.debt_seconds(0.5) == 0


def test_unused_tokens_accumulate_up_to_one_burst():
    bucket = TokenBucket(100, wait_seconds_max=WAIT_SECONDS_MAX)
    assert bucket.consume(150, 1000) == 0.5


def test_debt_accumulates():
    bucket = TokenBucket(100, wait_seconds_max=WAIT_SECONDS_MAX)
    assert [bucket.consume(100, 0) for _ in range(3)] == [0, 1, 2]


def test_wait_is_bounded_after_a_flood():
    bucket = TokenBucket(100, wait_seconds_max=WAIT_SECONDS_MAX)
    assert bucket.consume(1e9, 0) == 60
    assert bucket.consume(1e9, 0) == 60
    assert bucket.debt_seconds(60) == 0


def test_rate_below_one_still_allows_a_token():
    bucket = TokenBucket(0.1, wait_seconds_max=WAIT_SECONDS_MAX)
    assert bucket.try_consume(1, 0) == 0
    assert bucket.try_consume(1, 0) == 10
    assert bucket.try_consume(1, 9) == pytest.approx(1)
    assert bucket.try_consume(1, 10.5) == 0


def test_try_consume_takes_nothing_without_enough_tokens():
    bucket = TokenBucket(2, wait_seconds_max=WAIT_SECONDS_MAX)
    assert [bucket.try_consume(1, 0) for _ in range(4)] == [0, 0, 0.5, 0.5]


def test_changed_rate_applies_to_existing_debt():
    bucket = TokenBucket(10, wait_seconds_max=WAIT_SECONDS_MAX)
    assert bucket.consume(110, 0) == 10
    bucket.rate = 100
    assert bucket.debt_seconds(0) == 1
    bucket.rate = 1
    assert bucket.debt_seconds(0) == 60


def test_bucket_is_full_once_it_is_refilled():
    bucket = TokenBucket(10, wait_seconds_max=WAIT_SECONDS_MAX)
    assert bucket.is_full(0)
    bucket.consume(5, 0)
    assert not bucket.is_full(0.4)
    assert bucket.is_full(0.5)


def test_token_is_available_after_the_returned_wait():
    bucket = TokenBucket(3, wait_seconds_max=WAIT_SECONDS_MAX)
    now = 1000.1
    for _ in range(1000):
        if wait := bucket.try_consume(1, now):
            now += wait
            assert bucket.try_consume(1, now) == 0


@given(
    rate=st.floats(0.1, 1e6),
    steps=st.lists(st.tuples(st.floats(0, 30), st.floats(0, 1)), min_size=1, max_size=50),
)
def test_client_that_waits_uses_at_most_rate_and_burst(rate, steps):
    bucket = TokenBucket(rate, wait_seconds_max=WAIT_SECONDS_MAX)
    now = spent = last = 0.0
    for share, idle_seconds in steps:
        now += idle_seconds
        last = share * rate
        now += bucket.consume(last, now)
        spent += last
    # After all waits there is no debt, so this holds without the last amount.
    allowed = max(1.0, rate) + rate * now
    assert spent <= allowed or math.isclose(spent, allowed)
