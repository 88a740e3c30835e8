"""Alerts about managed etcds and their snapshots, as the operator sees them.

The operator's own defaults are above this room: a test compares the bounds with them.
"""

from typing import Final

from kafscale.monitoring.alerts.rule import CLUSTER, OF_CLUSTER, Alert, Group, Severity
from kafscale.monitoring.promql import largest, smallest
from kafscale.text.units import GIB

QUOTA_BYTES: Final = 4 * GIB
"""etcd.managed.quota, by default."""
STALE_S: Final = 7200
"""etcd.snapshots.staleAfterSeconds, by default."""

_READY: Final = largest("kafscale_operator_etcd_members_ready", *OF_CLUSTER)
_WANTED: Final = largest("kafscale_operator_etcd_members_wanted", *OF_CLUSTER)

ETCD: Final = Group(
    "kafscale-etcd",
    (
        Alert(
            name="KafscaleEtcdMemberDown",
            severity=Severity.WARNING,
            measured=_READY,
            bad=f"< {_WANTED}",
            lasts="10m",
            summary=f"Of the etcd of {CLUSTER}, only {{{{ $value }}}} members are ready.",
            description="Clients notice nothing, but the next loss would stop the cluster.",
        ),
        Alert(
            name="KafscaleEtcdQuorumLost",
            severity=Severity.CRITICAL,
            measured=_READY,
            bad=f"< ({_WANTED} + 1) / 2",
            lasts="1m",
            summary=f"The etcd of {CLUSTER} has lost its majority, with {{{{ $value }}}} members "
            "ready.",
            description="Topics cannot be changed and offsets not committed; brokers stop "
            "serving when their leases have ended. Records go on to be safe.",
        ),
        Alert(
            name="KafscaleEtcdDatabaseLarge",
            severity=Severity.CRITICAL,
            measured=largest("kafscale_operator_etcd_database_bytes", *OF_CLUSTER),
            bad=f"> 0.8 * {QUOTA_BYTES}",
            lasts="10m",
            summary=f"The database of the etcd of {CLUSTER} has grown to "
            "{{ $value | humanize1024 }}B.",
            description="Four fifths of etcd.managed.quota, 4Gi: at the whole of it, etcd takes "
            "no writes any more.",
        ),
        Alert(
            name="KafscaleSnapshotStale",
            severity=Severity.CRITICAL,
            measured=smallest("kafscale_operator_etcd_snapshot_age_seconds", *OF_CLUSTER),
            bad=f"> {STALE_S}",
            lasts="5m",
            summary=f"The newest snapshot of the etcd of {CLUSTER} is "
            "{{ $value | humanizeDuration }} old.",
            description="Everything works; but a lost etcd would now lose more than "
            "etcd.snapshots.staleAfterSeconds, two hours.",
        ),
        Alert(
            name="KafscaleSnapshotFailed",
            severity=Severity.WARNING,
            measured=largest("kafscale_operator_etcd_snapshot_success", *OF_CLUSTER),
            bad="== 0",
            lasts="15m",
            summary=f"The last snapshot of the etcd of {CLUSTER} could not be taken.",
            description="It is tried again; the older ones are still there.",
        ),
        Alert(
            name="KafscaleSnapshotAccess",
            severity=Severity.WARNING,
            measured=largest("kafscale_operator_etcd_snapshot_access", *OF_CLUSTER),
            bad="== 0",
            lasts="15m",
            summary=f"The bucket of the snapshots of {CLUSTER} cannot be written, read or deleted "
            "from.",
            description="No snapshot will come before it can: keys, rights, the name of the "
            "bucket, its region.",
        ),
    ),
)
