"""How a managed etcd is reached, by whom, and how much of it may be away at once."""

from typing import Any

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers.network_policy import (
    namespaces,
    operators,
    pods,
    policy_of,
)
from kafscale.operator.manifests.etcd import pods as etcd_pods
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster


def headless(cluster: Cluster) -> Manifest:
    """The Service that gives each member a name, ready or not: they have to meet to become so."""
    service = _service(cluster, names.etcd_headless(cluster), with_peers=True)
    service["spec"] |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    return service


def client(cluster: Cluster) -> Manifest:
    """The Service of whichever member is ready, for people and their tools."""
    return _service(cluster, names.etcd(cluster), with_peers=False)


def budget(cluster: Cluster) -> Manifest:
    """Nodes are emptied so that one member is away at a time."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": names.metadata(cluster, names.etcd(cluster), names.ETCD_APP),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": names.labels(cluster, names.ETCD_APP)},
            # A member that is broken must not keep a node from being emptied.
            "unhealthyPodEvictionPolicy": "IfHealthyBudget",
        },
    }


def policy(cluster: Cluster, platform: Platform) -> Manifest | None:
    """Who may connect, if it is wanted: brokers and operator as clients, members as members."""
    wanted = cluster.spec.network_policy
    if not wanted.enabled:
        return None
    members = pods(cluster, names.ETCD_APP)
    clients = [pods(cluster, names.BROKER_APP), members, operators(platform)]
    monitors = namespaces(wanted.monitoring_namespace_labels)
    ingress = [
        {"from": clients, "ports": _ports(names.ETCD_CLIENT_PORT)},
        {"from": [members], "ports": _ports(names.ETCD_PEER_PORT)},
        {"from": [monitors], "ports": _ports(etcd_pods.METRICS_PORT)},
    ]
    return policy_of(cluster, names.etcd(cluster), names.ETCD_APP, ingress)


def _service(cluster: Cluster, name: str, *, with_peers: bool) -> Manifest:
    ports = {"client": names.ETCD_CLIENT_PORT, "metrics": etcd_pods.METRICS_PORT}
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
