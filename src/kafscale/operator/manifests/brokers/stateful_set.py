"""The StatefulSet of the brokers: a pod each, with a name that stays and nothing else that does.

The laws: how many there are is not said here, but through the scale subresource, where an
autoscaler may say it as well. All pods may start at once. None is replaced because the template
changed: whoever drains brokers before also deletes their pods.
"""

from typing import Any, Final

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names, placement
from kafscale.operator.manifests.brokers import config_map, env, listeners
from kafscale.operator.manifests.brokers.config_check import STARTUP_SECONDS_MAX
from kafscale.operator.manifests.names import EtcdAccess, Platform
from kafscale.operator.manifests.security import container_security, pod_security
from kafscale.operator.spec.base import ResourceMap
from kafscale.operator.spec.cluster import Cluster

CONTAINER: Final = "broker"
STARTUP_PERIOD_SECONDS: Final = 2
READABLE_BY_GROUP: Final = 0o440


def stateful_set(
    cluster: Cluster, platform: Platform, etcd: EtcdAccess, *, secrets_checksum: str
) -> Manifest:
    """The brokers; `secrets_checksum` is of what `broker_environment.secrets` are."""
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
    wanted, labels = cluster.spec.brokers, names.labels(cluster, names.BROKER_APP)
    optional = {
        "nodeSelector": wanted.node_selector,
        "tolerations": wanted.tolerations,
        "priorityClassName": wanted.priority_class_name,
    }
    return {
        "serviceAccountName": names.broker_account(cluster),
        # Brokers never ask Kubernetes. Workload identity brings a token of its own.
        "automountServiceAccountToken": False,
        # A Service called kafscale-something would leave variables that look like settings.
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": wanted.termination_grace_period_seconds,
        "securityContext": pod_security(),
        "containers": [_container(cluster, platform, etcd)],
        "volumes": _volumes(cluster, etcd),
        "topologySpreadConstraints": placement.spread(labels, placement.ZONE, placement.HOST),
        "affinity": placement.apart(labels),
        **names.pull_secrets(platform),
        **{key: value for key, value in optional.items() if value},
    }


def _container(cluster: Cluster, platform: Platform, etcd: EtcdAccess) -> dict[str, Any]:
    resources = cluster.spec.brokers.resources
    ports = {**listeners.client_ports(cluster), **listeners.control_ports(cluster)}
    return {
        "name": CONTAINER,
        "image": cluster.spec.brokers.image or platform.broker_image,
        "args": ["broker"],
        "ports": [
            {"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()
        ],
        "env": env.variables(cluster, platform, etcd),
        "envFrom": env.sources(cluster, etcd),
        "resources": {
            "requests": _amounts(resources.requests),
            "limits": _amounts(resources.limits),
        },
        "volumeMounts": _mounts(cluster, etcd),
        "securityContext": container_security(),
        **_probes(),
    }


def _probes() -> dict[str, Any]:
    kafka = {"tcpSocket": {"port": names.KAFKA_PORT}}
    health = {"httpGet": {"path": "/health", "port": names.METRICS_PORT}}
    return {
        # A broker that waits for its stores gives up by itself, and says why: it gets the time to.
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
            # A second, the default, is less than a busy broker may take.
            "timeoutSeconds": 5,
        },
    }


def _volumes(cluster: Cluster, etcd: EtcdAccess) -> list[dict[str, Any]]:
    secrets = {f"secret-{i}": each.name for i, each in enumerate(cluster.spec.brokers.secrets)}
    if etcd.tls_secret:
        secrets = {"etcd-tls": etcd.tls_secret, **secrets}
    return [
        {"name": "config", "configMap": {"name": names.broker_config(cluster)}},
        {"name": "tmp", "emptyDir": {}},
        *(
            {"name": name, "secret": {"secretName": secret, "defaultMode": READABLE_BY_GROUP}}
            for name, secret in secrets.items()
        ),
    ]


def _mounts(cluster: Cluster, etcd: EtcdAccess) -> list[dict[str, Any]]:
    secrets = {
        f"secret-{i}": each.mount_path for i, each in enumerate(cluster.spec.brokers.secrets)
    }
    if etcd.tls_secret:
        secrets = {"etcd-tls": config_map.ETCD_TLS_DIRECTORY, **secrets}
    file = f"{config_map.DIRECTORY}/{config_map.FILE}"
    return [
        # The file alone: nothing can be mounted below a directory that is a ConfigMap.
        {"name": "config", "mountPath": file, "subPath": config_map.FILE, "readOnly": True},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - the pod's own.
        *({"name": name, "mountPath": path, "readOnly": True} for name, path in secrets.items()),
    ]


def _amounts(amounts: ResourceMap) -> dict[str, str]:
    return {"cpu": amounts.cpu, "memory": amounts.memory}
