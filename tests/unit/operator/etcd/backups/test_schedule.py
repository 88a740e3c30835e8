"""Tests of when snapshots are due, and of the conditions that report them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.operator.etcd.backups.schedule import (
    ACCESS,
    JITTER_MAX,
    RETRY_MS_MAX,
    RETRY_MS_MIN,
    SNAPSHOT,
    Failures,
    SnapshotView,
    backoff_ms,
    conditions,
    disabled,
    is_due,
    is_stale,
)
from kafscale.operator.spec.status import FALSE, TRUE, UNKNOWN

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
NONE = Failures()


@pytest.mark.parametrize(
    ("age_ms", "expected"),
    [
        (None, True),
        (0, False),
        (HOUR_MS - 1, False),
        (HOUR_MS, True),
        (-1, False),
        (-HOUR_MS, True),
    ],
)
def test_snapshot_is_due_an_interval_after_the_newest(age_ms, expected):
    newest_at_ms = None if age_ms is None else NOW_MS - age_ms
    assert is_due(NOW_MS, newest_at_ms, HOUR_MS, NONE, jitter=0) is expected


def test_failure_is_retried_after_a_delay():
    failed = NONE.another(NOW_MS, "no bucket")
    assert not is_due(NOW_MS + RETRY_MS_MIN - 1, None, HOUR_MS, failed, jitter=0)
    assert is_due(NOW_MS + RETRY_MS_MIN, None, HOUR_MS, failed, jitter=0)
    assert not is_due(NOW_MS + RETRY_MS_MIN, None, HOUR_MS, failed, jitter=1)


def test_failures_are_counted_with_the_last_reason():
    assert NONE.another(1, "a").another(2, "b") == Failures(2, 2, "b")


@given(st.integers(1, 100), st.integers(10_000, HOUR_MS), st.floats(0, 1))
def test_delays_grow_and_are_bounded(count, interval_ms, jitter):
    delay_ms = backoff_ms(count, interval_ms, jitter)
    assert 0 < delay_ms <= min(interval_ms, RETRY_MS_MAX * (1 + JITTER_MAX))
    assert delay_ms <= backoff_ms(count + 1, interval_ms, jitter)


def test_snapshot_older_than_the_limit_is_stale():
    assert not is_stale(NOW_MS, NOW_MS - 7200, 7200)
    assert is_stale(NOW_MS, NOW_MS - 7201, 7200)


NOW_MS = 1_700_000_000_000
FAILED = Failures(2, NOW_MS, "no leader")


def condition_of(type_, **known):
    view = SnapshotView(now_ms=NOW_MS, stale_after_ms=7_200_000, **known)
    (condition,) = [each for each in conditions(view) if each.type == type_]
    return condition


@pytest.mark.parametrize(
    ("failure", "status", "reason"),
    [
        (None, UNKNOWN, "NotChecked"),
        ("", TRUE, "Accessible"),
        ("put a: access denied", FALSE, "NoAccess"),
    ],
)
def test_access(failure, status, reason):
    condition = condition_of(ACCESS, access_failure=failure)
    assert (condition.status, condition.reason) == (status, reason)
    assert (failure or "") in condition.message


@pytest.mark.parametrize(
    ("known", "status", "reason", "message"),
    [
        ({}, UNKNOWN, "NotChecked", ""),
        ({"is_bucket_checked": True}, UNKNOWN, "NoSnapshot", "there is no snapshot yet"),
        ({"failures": FAILED}, FALSE, "NoSnapshot", "failed: no leader"),
        ({"newest_at_ms": NOW_MS - 7_200_000}, TRUE, "Fresh", "2023-11-14T20:13:20.000Z"),
        ({"newest_at_ms": NOW_MS, "failures": FAILED}, TRUE, "Retrying", "failed: no leader"),
        ({"newest_at_ms": NOW_MS - 7_200_001}, FALSE, "Stale", "more than 7200 s ago"),
        ({"newest_at_ms": 0, "failures": FAILED}, FALSE, "Stale", "failed: no leader"),
    ],
)
def test_freshness(known, status, reason, message):
    condition = condition_of(SNAPSHOT, **known)
    assert (condition.status, condition.reason) == (status, reason)
    assert message in condition.message


def test_disabled_snapshots_are_reported():
    (condition,) = disabled()
    assert (condition.type, condition.status, condition.reason) == (SNAPSHOT, UNKNOWN, "Disabled")
