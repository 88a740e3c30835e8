"""The StatefulSet of a managed etcd, and names and addresses of its members.

Invariants: members are numbered from 0, and their names, addresses and volumes follow from the
number and never change. All pods start in parallel, because none is ready before a majority exists.
A changed template restarts no pod (`OnDelete`): `etcd.plan` does when the others are healthy.
Volumes outlive the StatefulSet and the cluster: a new cluster of the same name finds its metadata
again.

The class and size of existing volumes cannot be changed here; `etcd.apply` resizes them.
"""

from collections.abc import Iterable
from typing import Any, Final

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.etcd import pods
from kafscale.operator.manifests.etcd.restore import Restore
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster

COUNT_MAX: Final = 5
"""More members are slower, and not safer."""


def name(cluster: Cluster, index: int) -> str:
    """The name of a member and its pod."""
    return f"{names.etcd(cluster)}-{index}"


def volume_claim(cluster: Cluster, index: int) -> str:
    """The claim of a member's volume."""
    return f"{pods.DATA}-{name(cluster, index)}"


def host(cluster: Cluster, platform: Platform, index: int) -> str:
    return names.etcd_host(cluster, platform, name(cluster, index))


def client_url(cluster: Cluster, platform: Platform, index: int) -> str:
    """The URL of a member for clients."""
    return f"https://{host(cluster, platform, index)}:{names.ETCD_CLIENT_PORT}"


def peer_url(cluster: Cluster, platform: Platform, index: int) -> str:
    """The URL of a member for other members, by which they know it before it has started."""
    return f"https://{host(cluster, platform, index)}:{names.ETCD_PEER_PORT}"


def initial_cluster(cluster: Cluster, platform: Platform, indices: Iterable[int]) -> str:
    """Members in the format of etcd's `initial-cluster`."""
    return ",".join(
        f"{name(cluster, index)}={peer_url(cluster, platform, index)}" for index in indices
    )


def stateful_set(
    cluster: Cluster,
    platform: Platform,
    *,
    replicas: int,
    trust_checksum: str,
    restore: Restore | None = None,
) -> Manifest:
    """The StatefulSet; `restore` is what members of a new cluster are restored from."""
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": names.metadata(cluster, names.etcd(cluster), names.ETCD_APP),
        "spec": {
            "replicas": replicas,
            "serviceName": names.etcd_headless(cluster),
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "persistentVolumeClaimRetentionPolicy": {
                "whenDeleted": "Retain",
                "whenScaled": "Retain",
            },
            "selector": {"matchLabels": names.labels(cluster, names.ETCD_APP)},
            "template": pods.template(
                cluster, platform, trust_checksum=trust_checksum, restore=restore
            ),
            "volumeClaimTemplates": [_volume_claim_template(cluster)],
        },
    }


def _volume_claim_template(cluster: Cluster) -> Manifest:
    managed = cluster.spec.etcd.managed
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "volumeMode": "Filesystem",
        "resources": {"requests": {"storage": managed.storage}},
    }
    if managed.storage_class_name:
        spec["storageClassName"] = managed.storage_class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": pods.DATA, "labels": names.labels(cluster, names.ETCD_APP)},
        "spec": spec,
    }
