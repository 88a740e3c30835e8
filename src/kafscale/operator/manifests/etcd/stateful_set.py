"""The StatefulSet of a managed etcd, its pods, and names and addresses of its members.

Invariants: members are numbered from 0, and their names, addresses and volumes follow from the
number and never change. All pods start in parallel, because none is ready before a majority exists.
A changed template restarts no pod (`OnDelete`): `etcd.plan` does when the others are healthy.
Volumes outlive the StatefulSet and the cluster: a new cluster of the same name finds its metadata
again.

Clients and members authenticate by certificates, and the peer port accepts only certificates of
members. A pod that cannot reach the others is alive but not ready; a full database can still be
read, so its pod is both. The checksum covers the whole template: `etcd.plan` restarts pods whose
checksum differs. So pods with a restore container are replaced after the cluster has formed, and
can never restore again.

The class and size of existing volumes cannot be changed here; `etcd.executor` resizes them.
"""

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.etcd import bootstrap_config
from kafscale.operator.manifests.etcd.restore import Restore, restore_container
from kafscale.operator.manifests.names import Platform
from kafscale.operator.manifests.pods import (
    POD_NAME,
    ZONE,
    container_security,
    pod_anti_affinity,
    pod_name,
    pod_security,
    topology_spread,
)
from kafscale.operator.spec.cluster import Cluster
from kafscale.text.units import parse_size

COUNT_MAX: Final = 5
"""More members are slower, and not safer."""

CONTAINER: Final = "etcd"
DATA: Final = "data"
DATA_DIRECTORY: Final = "/var/lib/etcd/data"
"""Below the volume's root, where some file systems keep their own files."""
METRICS_PORT: Final = 2381
"""Health checks and metrics without TLS: the kubelet and Prometheus have no certificates."""
COMMON_NAME: Final = "kafscale-etcd"
"""The common name of members' certificates, which no other certificate has."""

_DATA_MOUNT: Final = {"name": DATA, "mountPath": "/var/lib/etcd"}
_TEMPORARY_MOUNT: Final = {"name": "tmp", "mountPath": "/tmp"}  # noqa: S108 - of the container.
_TLS: Final = "tls"
_TLS_DIRECTORY: Final = "/etc/etcd/tls"
_LIVENESS_PATH: Final = "/health?serializable=true&exclude=NOSPACE"
_READINESS_PATH: Final = "/health?exclude=NOSPACE"

_STARTUP_SECONDS_MAX: Final = 600
"""How long a member may take to read its database."""
_UNRESPONSIVE_SECONDS_MAX: Final = 300
"""How long a member may be unresponsive before it is killed, as during a defragmentation."""


def name(cluster: Cluster, index: int) -> str:
    """The name of a member and its pod."""
    return f"{names.etcd(cluster)}-{index}"


def volume_claim(cluster: Cluster, index: int) -> str:
    """The claim of a member's volume."""
    return f"{DATA}-{name(cluster, index)}"


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
            "template": template(cluster, platform, trust_checksum=trust_checksum, restore=restore),
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
        "metadata": {"name": DATA, "labels": names.labels(cluster, names.ETCD_APP)},
        "spec": spec,
    }


def template(
    cluster: Cluster, platform: Platform, *, trust_checksum: str, restore: Restore | None = None
) -> dict[str, Any]:
    """The pod template; `trust_checksum` changes with the trusted CAs."""
    labels = names.labels(cluster, names.ETCD_APP)
    spec: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 30,
        "securityContext": pod_security(),
        "affinity": pod_anti_affinity(labels),
        "topologySpreadConstraints": topology_spread(labels, ZONE),
        "containers": [_container(cluster, platform)],
        **names.image_pull_secrets(platform),
        "volumes": [
            {
                "name": _TLS,
                "secret": {"secretName": names.etcd_server_tls(cluster), "defaultMode": 0o440},
            }
        ],
    }
    if restore:
        container = restore_container(
            cluster,
            platform,
            restore,
            data_directory=DATA_DIRECTORY,
            mounts=[_DATA_MOUNT, _TEMPORARY_MOUNT],
        )
        spec["initContainers"] = [container]
        spec["volumes"] = [*spec["volumes"], {"name": _TEMPORARY_MOUNT["name"], "emptyDir": {}}]
        if cluster.spec.s3.credential_source == "workload-identity":
            spec["serviceAccountName"] = names.broker_account(cluster)
    checksummed = msgspec.json.encode([spec, trust_checksum], order="sorted")
    return {
        "metadata": {
            "labels": names.metadata(cluster, "", names.ETCD_APP)["labels"],
            "annotations": {names.CONFIG_CHECKSUM: hashlib.sha256(checksummed).hexdigest()[:32]},
        },
        "spec": spec,
    }


def checksum(pod_or_template: Manifest) -> str:
    """The checksum of the template of a pod; empty if it has none."""
    annotations: dict[str, str] = pod_or_template["metadata"].get("annotations") or {}
    return annotations.get(names.CONFIG_CHECKSUM, "")


def _container(cluster: Cluster, platform: Platform) -> dict[str, Any]:
    managed = cluster.spec.etcd.managed
    return {
        "name": CONTAINER,
        "image": managed.image or platform.etcd_image,
        "command": ["etcd", *_options(cluster, platform)],
        "env": [
            pod_name(),
            *bootstrap_config.variables(cluster),
            # A variable, because etcd exits on options that its version does not know.
            {"name": "ETCD_EXPERIMENTAL_INITIAL_CORRUPT_CHECK", "value": "true"},
        ],
        "ports": [
            {"name": "client", "containerPort": names.ETCD_CLIENT_PORT, "protocol": "TCP"},
            {"name": "peer", "containerPort": names.ETCD_PEER_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
        ],
        "resources": msgspec.to_builtins(managed.resources),
        "securityContext": container_security(),
        # The last log lines say why a member does not start.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "startupProbe": _probe(_LIVENESS_PATH, 2, _STARTUP_SECONDS_MAX // 2),
        "livenessProbe": _probe(_LIVENESS_PATH, 10, _UNRESPONSIVE_SECONDS_MAX // 10),
        "readinessProbe": _probe(_READINESS_PATH, 5, 2),
        "volumeMounts": [
            _DATA_MOUNT,
            {"name": _TLS, "mountPath": _TLS_DIRECTORY, "readOnly": True},
        ],
    }


def _options(cluster: Cluster, platform: Platform) -> list[str]:
    managed = cluster.spec.etcd.managed
    host = names.etcd_host(cluster, platform, POD_NAME)
    client, peer = names.ETCD_CLIENT_PORT, names.ETCD_PEER_PORT
    tls_options = [
        f"cert-file={_TLS_DIRECTORY}/tls.crt",
        f"key-file={_TLS_DIRECTORY}/tls.key",
        f"trusted-ca-file={_TLS_DIRECTORY}/ca.crt",
    ]
    return [
        f"--name={POD_NAME}",
        f"--data-dir={DATA_DIRECTORY}",
        f"--initial-cluster-token={cluster.uid}",
        f"--initial-advertise-peer-urls=https://{host}:{peer}",
        f"--listen-peer-urls=https://0.0.0.0:{peer}",
        f"--advertise-client-urls=https://{host}:{client}",
        f"--listen-client-urls=https://0.0.0.0:{client}",
        f"--listen-metrics-urls=http://0.0.0.0:{METRICS_PORT}",
        *(f"--{each}" for each in tls_options),
        "--client-cert-auth=true",
        *(f"--peer-{each}" for each in tls_options),
        "--peer-client-cert-auth=true",
        f"--peer-cert-allowed-cn={COMMON_NAME}",
        f"--quota-backend-bytes={parse_size(managed.quota)}",
        "--auto-compaction-mode=periodic",
        f"--auto-compaction-retention={managed.compaction_retention}",
        "--logger=zap",
        "--log-outputs=stderr",
    ]


def _probe(path: str, period_seconds: int, failure_threshold: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": "metrics", "scheme": "HTTP"},
        "periodSeconds": period_seconds,
        "timeoutSeconds": 5,
        "failureThreshold": failure_threshold,
    }
