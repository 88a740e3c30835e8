"""The init container that restores the empty volume of a new member from a snapshot.

Invariants: it does nothing to a volume that has data. All members restore the same snapshot, so it
is named by its key, never as the latest: a new one might be taken in between.
"""

from typing import Any, Final

import msgspec

from kafscale.admin.etcd.backups.snapshot_format import directory
from kafscale.operator.manifests import names
from kafscale.operator.manifests.etcd.bootstrap_config import BootstrapConfig, BootstrapMode
from kafscale.operator.manifests.names import Platform
from kafscale.operator.manifests.pods import POD_NAME, container_security, pod_name
from kafscale.operator.spec.cluster import Cluster

CONTAINER: Final = "restore"


class Restore(msgspec.Struct, frozen=True):
    """What the members are restored from."""

    snapshot: str
    """The key of the snapshot."""
    members: str
    """All members, in the format of `initial-cluster`."""


def restore_for(bootstrap: BootstrapConfig) -> Restore | None:
    """What members are restored from: only while their cluster forms."""
    is_restoring = bootstrap.mode is BootstrapMode.FORMING and bootstrap.snapshot
    return Restore(bootstrap.snapshot, bootstrap.members) if is_restoring else None


def restore_container(
    cluster: Cluster,
    platform: Platform,
    restore: Restore,
    *,
    data_directory: str,
    mounts: list[dict[str, Any]],
) -> dict[str, Any]:
    """The container; `mounts` are its writable volumes."""
    s3, prefix = cluster.spec.snapshots_s3, cluster.spec.etcd.snapshots.prefix
    host = names.etcd_host(cluster, platform, POD_NAME)
    variables = {
        "KAFSCALE_S3_BUCKET": s3.bucket,
        "KAFSCALE_S3_REGION": s3.region,
        "KAFSCALE_S3_ENDPOINT": s3.endpoint,
        "KAFSCALE_S3_PATH_STYLE": str(s3.uses_path_style).lower(),
        "KAFSCALE_S3_CREDENTIAL_SOURCE": s3.credential_source,
        "KAFSCALE_S3_ROLE_ARN": s3.role_arn,
    }
    return {
        "name": CONTAINER,
        "image": platform.operator_image,
        "command": [
            "kafscale",
            "etcd",
            "restore",
            "--if-empty",
            f"--snapshot={restore.snapshot}",
            f"--prefix={directory(prefix, cluster.namespace, cluster.name)}",
            f"--data-dir={data_directory}",
            f"--name={POD_NAME}",
            f"--initial-cluster={restore.members}",
            f"--initial-cluster-token={cluster.uid}",
            f"--initial-advertise-peer-urls=https://{host}:{names.ETCD_PEER_PORT}",
        ],
        "env": [
            pod_name(),
            *({"name": name, "value": value} for name, value in variables.items() if value),
        ],
        "envFrom": [{"secretRef": {"name": s3.secret}}] if s3.secret else [],
        "resources": msgspec.to_builtins(cluster.spec.etcd.managed.resources),
        "securityContext": container_security(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }
