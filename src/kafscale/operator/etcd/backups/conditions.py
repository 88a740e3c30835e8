"""What the status of a cluster says about its backups. Pure.

EtcdSnapshotAccess   whether snapshots can be stored
EtcdSnapshot         whether there is one that is young enough
"""

from typing import Final

import msgspec

from kafscale.metadata.schema.protobuf import format_time
from kafscale.operator.conditions import Condition, bad, ok, unknown
from kafscale.operator.etcd.backups.schedule import Failures, is_stale

ACCESS: Final = "EtcdSnapshotAccess"
SNAPSHOT: Final = "EtcdSnapshot"

_ADVICE: Final = "see spec.etcd.snapshots, its bucket and the rights of its keys"


class SnapshotView(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the snapshots of a cluster."""

    now_ms: int
    stale_after_ms: int
    is_listed: bool = False
    """Whether the bucket has been looked into."""
    newest_at_ms: int | None = None
    access_failure: str | None = None
    """What stands in the way of the bucket; empty for nothing, None before that was tried."""
    failures: Failures = Failures()


def conditions(view: SnapshotView) -> list[Condition]:
    return [_access(view), _snapshot(view)]


def disabled() -> list[Condition]:
    """What is said where nobody wants snapshots."""
    return [unknown(SNAPSHOT, "Disabled", "spec.etcd.snapshots.enabled is false: no backups")]


def _access(view: SnapshotView) -> Condition:
    if view.access_failure is None:
        return unknown(ACCESS, "NotTried")
    if view.access_failure:
        return bad(
            ACCESS, "NoAccess", f"snapshots cannot be stored: {view.access_failure}; {_ADVICE}"
        )
    return ok(ACCESS, "Accessible", "objects can be written, read and deleted")


def _snapshot(view: SnapshotView) -> Condition:
    why = f"; the last attempt failed: {view.failures.reason}" if view.failures.count else ""
    if view.newest_at_ms is None:
        if why or view.is_listed:
            make = bad if why else unknown
            return make(SNAPSHOT, "NoSnapshot", f"there is no snapshot yet{why}")
        return unknown(SNAPSHOT, "NotLooked")
    taken = f"the newest was taken at {format_time(view.newest_at_ms)}"
    if is_stale(view.now_ms, view.newest_at_ms, view.stale_after_ms):
        limit_s = view.stale_after_ms // 1000
        return bad(SNAPSHOT, "Stale", f"{taken}, more than {limit_s} s ago{why}")
    return ok(SNAPSHOT, "Retrying" if why else "Fresh", f"{taken}{why}")
