"""What the status says about backups, in each case."""

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


def told(type_, **known):
    view = SnapshotView(now_ms=NOW_MS, stale_after_ms=7_200_000, **known)
    (found,) = [each for each in conditions(view) if each.type == type_]
    return found


@pytest.mark.parametrize(
    ("failure", "status", "reason"),
    [
        (None, UNKNOWN, "NotTried"),
        ("", TRUE, "Accessible"),
        ("put a: access denied", FALSE, "NoAccess"),
    ],
)
def test_access(failure, status, reason):
    found = told(ACCESS, access_failure=failure)
    assert (found.status, found.reason) == (status, reason)
    assert (failure or "") in found.message


@pytest.mark.parametrize(
    ("known", "status", "reason", "words"),
    [
        ({}, UNKNOWN, "NotLooked", ""),
        ({"is_listed": True}, UNKNOWN, "NoSnapshot", "there is no snapshot yet"),
        ({"failures": FAILED}, FALSE, "NoSnapshot", "failed: no leader"),
        ({"newest_at_ms": NOW_MS - 7_200_000}, TRUE, "Fresh", "2023-11-14T20:13:20.000Z"),
        ({"newest_at_ms": NOW_MS, "failures": FAILED}, TRUE, "Retrying", "failed: no leader"),
        ({"newest_at_ms": NOW_MS - 7_200_001}, FALSE, "Stale", "more than 7200 s ago"),
        ({"newest_at_ms": 0, "failures": FAILED}, FALSE, "Stale", "failed: no leader"),
    ],
)
def test_freshness(known, status, reason, words):
    found = told(SNAPSHOT, **known)
    assert (found.status, found.reason) == (status, reason)
    assert words in found.message


def test_where_nobody_wants_snapshots_that_is_said():
    (found,) = disabled()
    assert (found.type, found.status, found.reason) == (SNAPSHOT, UNKNOWN, "Disabled")
