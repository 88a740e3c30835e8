"""Alerts about etcd and its snapshots.

Members and snapshots are those of managed etcd clusters, from metrics of the operator; space is
that of any etcd, from metrics of the brokers.

This package may not import the operator, so a test compares the limits with its defaults.
"""

from typing import Final

from generators.monitoring.alerts.rule import CLUSTER, CLUSTER_LABELS, Alert, RuleGroup, Severity
from generators.monitoring.promql import max_by, min_by
from kafscale.text.units import GIB

QUOTA_BYTES: Final = 4 * GIB
"""The default of etcd.managed.quota."""
STALE_S: Final = 7200
"""The default of etcd.snapshots.staleAfterSeconds."""

_READY: Final = max_by("kafscale_operator_etcd_members_ready", *CLUSTER_LABELS)
_DESIRED: Final = max_by("kafscale_operator_etcd_members_desired", *CLUSTER_LABELS)

_USED: Final = max_by("kafscale_etcd_database_used_bytes", *CLUSTER_LABELS)
_QUOTA: Final = max_by("kafscale_etcd_database_quota_bytes", *CLUSTER_LABELS)

ETCD: Final = RuleGroup(
    "kafscale-etcd",
    (
        Alert(
            name="KafscaleEtcdMemberDown",
            severity=Severity.WARNING,
            measured=_READY,
            condition=f"< {_DESIRED}",
            duration="10m",
            summary=f"Only {{{{ $value }}}} etcd members of {CLUSTER} are ready.",
            description="Clients are not affected, but the loss of another member would stop the "
            "cluster.",
        ),
        Alert(
            name="KafscaleEtcdQuorumLost",
            severity=Severity.CRITICAL,
            measured=_READY,
            condition=f"< ({_DESIRED} + 1) / 2",
            duration="1m",
            summary=f"The etcd of {CLUSTER} has lost its quorum: {{{{ $value }}}} members are "
            "ready.",
            description="Topics cannot be changed and offsets cannot be committed; brokers stop "
            "serving when their leases expire. Records are safe.",
        ),
        Alert(
            name="KafscaleEtcdDatabaseLarge",
            severity=Severity.CRITICAL,
            measured=max_by("kafscale_operator_etcd_database_bytes", *CLUSTER_LABELS),
            condition=f"> 0.8 * {QUOTA_BYTES}",
            duration="10m",
            summary=f"The etcd database of {CLUSTER} has {{{{ $value | humanize1024 }}}}B.",
            description="It exceeds 80 % of etcd.managed.quota (default 4Gi); at the quota, etcd "
            "rejects writes.",
        ),
        Alert(
            name="KafscaleEtcdSpaceLow",
            severity=Severity.WARNING,
            measured=f"{_USED} / {_QUOTA}",
            may_be_empty=True,  # Without etcd.
            condition="> 0.7",
            duration="5m",
            summary=f"The etcd of {CLUSTER} has used {{{{ $value | humanizePercentage }}}} of its "
            "quota.",
            description="Offset commits are throttled, and refused from 95 % on, so that topics, "
            "leases and owners have room.",
        ),
        Alert(
            name="KafscaleEtcdNoSpace",
            severity=Severity.CRITICAL,
            measured=max_by("kafscale_etcd_no_space", *CLUSTER_LABELS),
            may_be_empty=True,
            condition="== 1",
            duration="1m",
            summary=f"The etcd of {CLUSTER} rejects all writes (alarm NOSPACE).",
            description="Topics, groups and offsets cannot be changed, and a restarted broker "
            "cannot join; records are produced and consumed until memory is full. Compact, "
            "defragment, and disarm the alarm.",
        ),
        Alert(
            name="KafscaleSnapshotStale",
            severity=Severity.CRITICAL,
            measured=min_by("kafscale_operator_etcd_snapshot_age_seconds", *CLUSTER_LABELS),
            condition=f"> {STALE_S}",
            duration="5m",
            summary=f"The newest etcd snapshot of {CLUSTER} is "
            "{{ $value | humanizeDuration }} old.",
            description="Clients are not affected, but losing etcd now would lose more than "
            "etcd.snapshots.staleAfterSeconds (default two hours) of metadata.",
        ),
        Alert(
            name="KafscaleSnapshotFailed",
            severity=Severity.WARNING,
            measured=max_by("kafscale_operator_etcd_snapshot_success", *CLUSTER_LABELS),
            condition="== 0",
            duration="15m",
            summary=f"The last etcd snapshot of {CLUSTER} failed.",
            description="The operator retries; older snapshots still exist.",
        ),
        Alert(
            name="KafscaleSnapshotAccess",
            severity=Severity.WARNING,
            measured=max_by("kafscale_operator_etcd_snapshot_access", *CLUSTER_LABELS),
            condition="== 0",
            duration="15m",
            summary="The operator cannot write, read or delete objects in the snapshot bucket "
            f"of {CLUSTER}.",
            description="There will be no snapshot before it can: check credentials, permissions, "
            "bucket name and region.",
        ),
    ),
)
