"""Tests of the conditions of backups."""

import pytest

from kafscale.operator.conditions import FALSE, TRUE, UNKNOWN
from kafscale.operator.etcd.backups.conditions import (
    ACCESS,
    SNAPSHOT,
    SnapshotView,
    conditions,
    disabled,
)
from kafscale.operator.etcd.backups.schedule import Failures

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
