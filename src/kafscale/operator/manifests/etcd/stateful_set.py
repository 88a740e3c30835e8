"""The members of a managed etcd: what they are called, where they are, and the set they are in.

The laws: members have numbers from 0 on, and their names, addresses and volumes follow from these
and never change. The set starts all pods at once, for none is ready before most are there, and
restarts none by itself: that takes somebody who sees whether the others are well. Volumes outlive
the set, and the cluster: who makes a cluster of the same name anew finds its metadata again.

The class and size of volumes that exist cannot be changed here; `keeping` asks for larger ones.
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
"""More members are no safer, and slower."""


def name(cluster: Cluster, index: int) -> str:
    """A member's name, and its pod's."""
    return f"{names.etcd(cluster)}-{index}"


def volume_claim(cluster: Cluster, index: int) -> str:
    """The claim of the volume that a member keeps everything on."""
    return f"{pods.DATA}-{name(cluster, index)}"


def host(cluster: Cluster, platform: Platform, index: int) -> str:
    return names.etcd_host(cluster, platform, name(cluster, index))


def client_url(cluster: Cluster, platform: Platform, index: int) -> str:
    """Where clients reach a member."""
    return f"https://{host(cluster, platform, index)}:{names.ETCD_CLIENT_PORT}"


def peer_url(cluster: Cluster, platform: Platform, index: int) -> str:
    """Where other members reach a member; by this they know it before it has started."""
    return f"https://{host(cluster, platform, index)}:{names.ETCD_PEER_PORT}"


def initial_cluster(cluster: Cluster, platform: Platform, indices: Iterable[int]) -> str:
    """Members as etcd wants to be told of them."""
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
    """The set of the pods; `restore` is what members of a new cluster begin with."""
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
