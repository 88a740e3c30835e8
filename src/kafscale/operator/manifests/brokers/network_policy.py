"""The NetworkPolicy of the brokers, and the parts of all NetworkPolicies.

Invariants: clients may connect from anywhere, because brokers authenticate them. Metrics are for
Prometheus and, like the control plane, for the operator's namespace and the brokers. Egress is not
restricted, because the addresses of a bucket are unknown.
"""

from typing import Any

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers.listeners import METRICS, OWN_PORTS, client_ports
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster


def policy(cluster: Cluster, platform: Platform) -> Manifest | None:
    """The policy of the brokers, if enabled."""
    desired = cluster.spec.network_policy
    if not desired.enabled:
        return None
    control_clients = [operators(platform), pods(cluster, names.BROKER_APP)]
    ingress = [
        {"ports": _ports(client_ports(cluster))},
        {"from": control_clients, "ports": _ports(OWN_PORTS)},
        {
            "from": [namespaces(desired.monitoring_namespace_labels)],
            "ports": _ports({METRICS: OWN_PORTS[METRICS]}),
        },
    ]
    return build_policy(cluster, names.broker(cluster), names.BROKER_APP, ingress)


def build_policy(cluster: Cluster, name: str, app: str, ingress: list[dict[str, Any]]) -> Manifest:
    """A policy that allows `ingress` to the pods of a component."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": names.metadata(cluster, name, app),
        "spec": {**pods(cluster, app), "policyTypes": ["Ingress"], "ingress": ingress},
    }


def pods(cluster: Cluster, app: str) -> dict[str, Any]:
    """A selector of the pods of a component."""
    return {"podSelector": {"matchLabels": names.labels(cluster, app)}}


def operators(platform: Platform) -> dict[str, Any]:
    """A selector of all pods in the operator's namespace."""
    return namespaces({"kubernetes.io/metadata.name": platform.namespace})


def namespaces(labels: dict[str, str]) -> dict[str, Any]:
    """A selector of all pods in the namespaces with these labels; empty selects all namespaces."""
    return {"namespaceSelector": {"matchLabels": labels} if labels else {}}


def _ports(ports: dict[str, int]) -> list[dict[str, Any]]:
    return [{"protocol": "TCP", "port": port} for port in ports.values()]
