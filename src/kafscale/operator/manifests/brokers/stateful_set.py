"""The StatefulSet of the brokers: pods with stable names and no volumes.

Invariants: replicas are not set here but through the scale subresource, which an autoscaler may use
as well. Pods start in parallel. A changed template restarts no pod (`OnDelete`): the rollout drains
brokers, then deletes their pods.
"""

from typing import Any, Final

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers import config_map, listeners
from kafscale.operator.manifests.brokers.config_check import STARTUP_SECONDS_MAX
from kafscale.operator.manifests.names import EtcdAccess, Platform
from kafscale.operator.manifests.pods import (
    HOST,
    ZONE,
    container_security,
    pod_anti_affinity,
    pod_security,
    topology_spread,
)
from kafscale.operator.spec.base import ResourceMap
from kafscale.operator.spec.cluster import Cluster

CONTAINER: Final = "broker"
STARTUP_PERIOD_SECONDS: Final = 2
READABLE_BY_GROUP: Final = 0o440


def stateful_set(
    cluster: Cluster, platform: Platform, etcd: EtcdAccess, *, secrets_checksum: str
) -> Manifest:
    """The brokers; `secrets_checksum` is that of the Secrets that brokers read at the start."""
    annotations = {
        **cluster.spec.brokers.pod_annotations,
        names.CONFIG_CHECKSUM: config_map.checksum(cluster, platform, etcd),
        names.SECRETS_CHECKSUM: secrets_checksum,
    }
    metadata = names.metadata(cluster, names.broker(cluster), names.BROKER_APP)
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata,
        "spec": {
            "serviceName": names.broker_headless(cluster),
            "selector": {"matchLabels": names.labels(cluster, names.BROKER_APP)},
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "template": {
                "metadata": {"labels": metadata["labels"], "annotations": annotations},
                "spec": _pod(cluster, platform, etcd),
            },
        },
    }


def _pod(cluster: Cluster, platform: Platform, etcd: EtcdAccess) -> dict[str, Any]:
    desired, labels = cluster.spec.brokers, names.labels(cluster, names.BROKER_APP)
    optional = {
        "nodeSelector": desired.node_selector,
        "tolerations": desired.tolerations,
        "priorityClassName": desired.priority_class_name,
    }
    return {
        "serviceAccountName": names.broker_account(cluster),
        # Brokers do not use the Kubernetes API. Workload identity mounts its own token.
        "automountServiceAccountToken": False,
        # A Service named kafscale-* would set variables that look like settings.
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": desired.termination_grace_period_seconds,
        "securityContext": pod_security(),
        "containers": [_container(cluster, platform, etcd)],
        "volumes": _volumes(cluster, etcd),
        "topologySpreadConstraints": topology_spread(labels, ZONE, HOST),
        "affinity": pod_anti_affinity(labels),
        **names.image_pull_secrets(platform),
        **{key: value for key, value in optional.items() if value},
    }


def _container(cluster: Cluster, platform: Platform, etcd: EtcdAccess) -> dict[str, Any]:
    resources = cluster.spec.brokers.resources
    ports = {**listeners.client_ports(cluster), **listeners.OWN_PORTS}
    return {
        "name": CONTAINER,
        "image": cluster.spec.brokers.image or platform.broker_image,
        "args": ["broker"],
        "ports": [
            {"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()
        ],
        "env": config_map.env_variables(cluster, platform, etcd),
        "envFrom": config_map.env_sources(cluster, etcd),
        "resources": {
            "requests": _resource_list(resources.requests),
            "limits": _resource_list(resources.limits),
        },
        "volumeMounts": _mounts(cluster, etcd),
        "securityContext": container_security(),
        **_probes(),
    }


def _probes() -> dict[str, Any]:
    kafka = {"tcpSocket": {"port": names.KAFKA_PORT}}
    health = {"httpGet": {"path": "/health", "port": names.METRICS_PORT}}
    return {
        # Longer than the broker's own startup timeout, which logs why it gives up.
        "startupProbe": {
            **health,
            "periodSeconds": STARTUP_PERIOD_SECONDS,
            "failureThreshold": STARTUP_SECONDS_MAX // STARTUP_PERIOD_SECONDS,
        },
        "readinessProbe": {**kafka, "initialDelaySeconds": 5, "periodSeconds": 10},
        "livenessProbe": {
            **health,
            "initialDelaySeconds": 15,
            "periodSeconds": 20,
            # The default of one second is too short for a busy broker.
            "timeoutSeconds": 5,
        },
    }


def _volumes(cluster: Cluster, etcd: EtcdAccess) -> list[dict[str, Any]]:
    secrets = {f"secret-{i}": each.name for i, each in enumerate(cluster.spec.brokers.secrets)}
    own = {name: secret for name, (secret, _) in _certificates(cluster, etcd).items()}
    return [
        {"name": "config", "configMap": {"name": names.broker_config(cluster)}},
        {"name": "tmp", "emptyDir": {}},
        *(
            {"name": name, "secret": {"secretName": secret, "defaultMode": READABLE_BY_GROUP}}
            for name, secret in {**own, **secrets}.items()
        ),
    ]


def _mounts(cluster: Cluster, etcd: EtcdAccess) -> list[dict[str, Any]]:
    secrets = {
        f"secret-{i}": each.mount_path for i, each in enumerate(cluster.spec.brokers.secrets)
    }
    own = {name: path for name, (_, path) in _certificates(cluster, etcd).items()}
    file = f"{config_map.DIRECTORY}/{config_map.FILE}"
    return [
        # Only the file: nothing can be mounted below a ConfigMap's directory.
        {"name": "config", "mountPath": file, "subPath": config_map.FILE, "readOnly": True},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - the pod's own.
        *(
            {"name": name, "mountPath": path, "readOnly": True}
            for name, path in {**own, **secrets}.items()
        ),
    ]


def _certificates(cluster: Cluster, etcd: EtcdAccess) -> dict[str, tuple[str, str]]:
    """The Secrets with certificates that brokers use, and their directories, by volume."""
    mounted = {"control-tls": (names.control_tls(cluster), config_map.CONTROL_TLS_DIRECTORY)}
    if cluster.spec.tls.enabled:
        directory = config_map.LISTENER_TLS_DIRECTORY
        mounted["listener-tls"] = (names.listener_tls(cluster), directory)
    if etcd.tls_secret:
        mounted["etcd-tls"] = (etcd.tls_secret, config_map.ETCD_TLS_DIRECTORY)
    return mounted


def _resource_list(resource_map: ResourceMap) -> dict[str, str]:
    return {"cpu": resource_map.cpu, "memory": resource_map.memory}
