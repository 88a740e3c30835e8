"""When the next snapshot is due, when the newest is stale, and the conditions that say so. Pure.

Invariants: the first snapshot is due at once, later ones an interval after the newest, whichever
process took it. A failed attempt is retried with exponential backoff, but at least once per
interval. A snapshot from the future, written with a wrong clock, does not block new ones.
"""

from typing import Final

import msgspec

from kafscale.metadata.schema.protobuf import format_time
from kafscale.operator.spec.status import Condition, bad, ok, unknown

RETRY_MS_MIN: Final = 15_000
RETRY_MS_MAX: Final = 600_000
JITTER_MAX: Final = 0.3
"""The share by which a delay may be longer, so that clusters do not retry in step."""

ACCESS: Final = "EtcdSnapshotAccess"
"""Whether snapshots can be stored."""
SNAPSHOT: Final = "EtcdSnapshot"
"""Whether the newest one is recent enough."""

_ADVICE: Final = "check spec.etcd.snapshots, its bucket and the permissions of its keys"


class Failures(msgspec.Struct, frozen=True):
    """Consecutive failures, and the time of the last one."""

    count: int = 0
    last_at_ms: int = 0
    reason: str = ""

    def another(self, now_ms: int, reason: str) -> "Failures":
        return Failures(self.count + 1, now_ms, reason)


def is_due(
    now_ms: int, newest_at_ms: int | None, interval_ms: int, failures: Failures, jitter: float
) -> bool:
    """Whether to take a snapshot now; `jitter` is between 0 and 1."""
    if newest_at_ms is not None and abs(now_ms - newest_at_ms) < interval_ms:
        return False
    return is_retry_due(now_ms, interval_ms, failures, jitter)


def is_retry_due(now_ms: int, interval_ms: int, failures: Failures, jitter: float) -> bool:
    """Whether the backoff after the last failure has passed."""
    return now_ms - failures.last_at_ms >= backoff_ms(failures.count, interval_ms, jitter)


def backoff_ms(failure_count: int, interval_ms: int, jitter: float) -> int:
    """The delay after consecutive failures.

    >>> [backoff_ms(count, 3_600_000, jitter=0) for count in (0, 1, 2, 3, 20, 2000)]
    [0, 15000, 30000, 60000, 600000, 600000]
    """
    assert 0 <= jitter <= 1, jitter
    if failure_count == 0:
        return 0
    # The maximum is reached after a few doublings; do not compute huge powers.
    delay_ms = RETRY_MS_MIN << min(failure_count - 1, 10)
    return min(int(min(delay_ms, RETRY_MS_MAX) * (1 + JITTER_MAX * jitter)), interval_ms)


def is_stale(now_ms: int, newest_at_ms: int, stale_after_ms: int) -> bool:
    """Whether the newest snapshot is too old to rely on."""
    return now_ms - newest_at_ms > stale_after_ms


class SnapshotView(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the snapshots of a cluster."""

    now_ms: int
    stale_after_ms: int
    is_bucket_checked: bool = False
    """Whether the bucket has been listed."""
    newest_at_ms: int | None = None
    access_failure: str | None = None
    """Why the bucket cannot be used; empty if it can, None before the first check."""
    failures: Failures = Failures()


def conditions(view: SnapshotView) -> list[Condition]:
    return [_access(view), _snapshot(view)]


def disabled() -> list[Condition]:
    """The conditions if snapshots are disabled."""
    return [unknown(SNAPSHOT, "Disabled", "no backups: spec.etcd.snapshots.enabled is false")]


def _access(view: SnapshotView) -> Condition:
    if view.access_failure is None:
        return unknown(ACCESS, "NotChecked")
    if view.access_failure:
        return bad(
            ACCESS, "NoAccess", f"snapshots cannot be stored: {view.access_failure}; {_ADVICE}"
        )
    return ok(ACCESS, "Accessible", "objects can be written, read and deleted")


def _snapshot(view: SnapshotView) -> Condition:
    failure = f"; the last attempt failed: {view.failures.reason}" if view.failures.count else ""
    if view.newest_at_ms is None:
        if failure or view.is_bucket_checked:
            make = bad if failure else unknown
            return make(SNAPSHOT, "NoSnapshot", f"there is no snapshot yet{failure}")
        return unknown(SNAPSHOT, "NotChecked")
    taken = f"the newest snapshot was taken at {format_time(view.newest_at_ms)}"
    if is_stale(view.now_ms, view.newest_at_ms, view.stale_after_ms):
        limit_s = view.stale_after_ms // 1000
        return bad(SNAPSHOT, "Stale", f"{taken}, more than {limit_s} s ago{failure}")
    return ok(SNAPSHOT, "Retrying" if failure else "Fresh", f"{taken}{failure}")
