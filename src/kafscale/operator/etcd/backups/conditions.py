"""The conditions of a cluster's backups. Pure.

EtcdSnapshotAccess   whether snapshots can be stored
EtcdSnapshot         whether the newest one is recent enough
"""

from typing import Final

import msgspec

from kafscale.metadata.schema.protobuf import format_time
from kafscale.operator.conditions import Condition, bad, ok, unknown
from kafscale.operator.etcd.backups.schedule import Failures, is_stale

ACCESS: Final = "EtcdSnapshotAccess"
SNAPSHOT: Final = "EtcdSnapshot"

_ADVICE: Final = "check spec.etcd.snapshots, its bucket and the permissions of its keys"


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
