"""Services, PodDisruptionBudget and NetworkPolicy of a managed etcd."""

from typing import Any

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers.network_policy import (
    build_policy,
    namespaces,
    operators,
    pods,
)
from kafscale.operator.manifests.etcd.stateful_set import METRICS_PORT
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster


def headless(cluster: Cluster) -> Manifest:
    """The headless Service, which includes pods that are not ready: they need each other to be."""
    service = _service(cluster, names.etcd_headless(cluster), with_peers=True)
    service["spec"] |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    return service


def client(cluster: Cluster) -> Manifest:
    """The Service of the ready members, for people and their tools."""
    return _service(cluster, names.etcd(cluster), with_peers=False)


def pod_disruption_budget(cluster: Cluster) -> Manifest:
    """Nodes are drained so that one member is unavailable at a time."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": names.metadata(cluster, names.etcd(cluster), names.ETCD_APP),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": names.labels(cluster, names.ETCD_APP)},
            # A broken member must not block the drain of a node.
            "unhealthyPodEvictionPolicy": "IfHealthyBudget",
        },
    }


def policy(cluster: Cluster, platform: Platform) -> Manifest | None:
    """The NetworkPolicy, if enabled: brokers and operator as clients, members as peers."""
    desired = cluster.spec.network_policy
    if not desired.enabled:
        return None
    members = pods(cluster, names.ETCD_APP)
    clients = [pods(cluster, names.BROKER_APP), members, operators(platform)]
    monitors = namespaces(desired.monitoring_namespace_labels)
    ingress = [
        {"from": clients, "ports": _ports(names.ETCD_CLIENT_PORT)},
        {"from": [members], "ports": _ports(names.ETCD_PEER_PORT)},
        {"from": [monitors], "ports": _ports(METRICS_PORT)},
    ]
    return build_policy(cluster, names.etcd(cluster), names.ETCD_APP, ingress)


def _service(cluster: Cluster, name: str, *, with_peers: bool) -> Manifest:
    ports = {"client": names.ETCD_CLIENT_PORT, "metrics": METRICS_PORT}
    if with_peers:
        ports["peer"] = names.ETCD_PEER_PORT
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names.metadata(cluster, name, names.ETCD_APP),
        "spec": {
            "type": "ClusterIP",
            "selector": names.labels(cluster, names.ETCD_APP),
            "ports": [
                {"name": each, "port": port, "targetPort": each, "protocol": "TCP"}
                for each, port in ports.items()
            ],
        },
    }


def _ports(port: int) -> list[dict[str, Any]]:
    return [{"protocol": "TCP", "port": port}]
