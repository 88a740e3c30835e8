"""The container that fills the empty volume of a new member from a snapshot, and then ends.

The laws: it does nothing to a volume that has data. All members begin with the same snapshot, so it
is named by its key here, never as the newest: one might be taken in between.
"""

from typing import Any, Final

import msgspec

from kafscale.operator.etcd.snapshot_keys import directory
from kafscale.operator.resources import names, security
from kafscale.operator.resources.etcd_admission import Admission, Door
from kafscale.operator.resources.names import Platform
from kafscale.operator.spec.cluster import Cluster

CONTAINER: Final = "restore"


class Restore(msgspec.Struct, frozen=True):
    """What members begin with."""

    snapshot: str
    """The key of the snapshot."""
    members: str
    """All members, as etcd wants to be told of them."""


def restore_of(admission: Admission) -> Restore | None:
    """What members begin with: something only while their cluster forms."""
    is_wanted = admission.door is Door.FORMING and admission.snapshot
    return Restore(admission.snapshot, admission.members) if is_wanted else None


def restore_container(
    cluster: Cluster,
    platform: Platform,
    restore: Restore,
    *,
    data_directory: str,
    mounts: list[dict[str, Any]],
) -> dict[str, Any]:
    """The container; `mounts` are where it may write."""
    snapshots, s3 = cluster.spec.etcd.snapshots, cluster.spec.s3
    host = names.pod_host(
        "$(POD_NAME)", names.etcd_headless(cluster), cluster.namespace, platform.cluster_domain
    )
    endpoint = snapshots.endpoint or s3.endpoint
    path_style = bool(endpoint) if s3.path_style is None else s3.path_style
    secret = snapshots.credentials_secret_ref or s3.secret
    variables = {
        "KAFSCALE_S3_BUCKET": snapshots.bucket or s3.bucket,
        "KAFSCALE_S3_REGION": snapshots.region or s3.region,
        "KAFSCALE_S3_ENDPOINT": endpoint,
        "KAFSCALE_S3_PATH_STYLE": str(path_style).lower(),
        "KAFSCALE_S3_CREDENTIAL_SOURCE": s3.credential_source,
        "KAFSCALE_S3_ROLE_ARN": s3.role_arn,
    }
    return {
        "name": CONTAINER,
        "image": platform.operator_image,
        "command": [
            "kafscale", "etcd", "restore", "--if-empty",
            f"--snapshot={restore.snapshot}",
            f"--prefix={directory(snapshots.prefix, cluster.namespace, cluster.name)}",
            f"--data-dir={data_directory}",
            "--name=$(POD_NAME)",
            f"--initial-cluster={restore.members}",
            f"--initial-cluster-token={cluster.uid}",
            f"--initial-advertise-peer-urls=https://{host}:{names.ETCD_PEER_PORT}",
        ],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            *({"name": name, "value": value} for name, value in variables.items() if value),
        ],
        "envFrom": [{"secretRef": {"name": secret}}] if secret else [],
        "resources": msgspec.to_builtins(cluster.spec.etcd.managed.resources),
        "securityContext": security.container_security(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }  # fmt: skip
