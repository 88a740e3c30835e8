"""Who may connect to which port of the brokers; and what all NetworkPolicies are made of.

The law: clients may come from anywhere, for the broker itself tells who they are; metrics are for
Prometheus, and the control plane for the operator's namespace and the brokers among themselves.
While both share a port, whoever may read metrics reaches the control plane too: a port of its own,
with TLS, is what `broker.controlPort` and `control.tls` are for. Where brokers connect to is not
restricted, because the addresses of a bucket are nobody's to know.
"""

from typing import Any

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers.listeners import METRICS, client_ports, control_ports
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster


def policy(cluster: Cluster, platform: Platform) -> Manifest | None:
    """The policy of the brokers, if one is wanted."""
    wanted = cluster.spec.network_policy
    if not wanted.enabled:
        return None
    insiders = [operators(platform), pods(cluster, names.BROKER_APP)]
    ports = control_ports(cluster)
    ingress = [
        {"ports": _ports(client_ports(cluster))},
        {"from": insiders, "ports": _ports(ports)},
        {
            "from": [namespaces(wanted.monitoring_namespace_labels)],
            "ports": _ports({METRICS: ports[METRICS]}),
        },
    ]
    return policy_of(cluster, names.broker(cluster), names.BROKER_APP, ingress)


def policy_of(cluster: Cluster, name: str, app: str, ingress: list[dict[str, Any]]) -> Manifest:
    """A policy by which the pods of a part of a cluster are reached as `ingress` says."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": names.metadata(cluster, name, app),
        "spec": {**pods(cluster, app), "policyTypes": ["Ingress"], "ingress": ingress},
    }


def pods(cluster: Cluster, app: str) -> dict[str, Any]:
    """The pods of a part of a cluster."""
    return {"podSelector": {"matchLabels": names.labels(cluster, app)}}


def operators(platform: Platform) -> dict[str, Any]:
    """All pods in the namespace of the operator."""
    return namespaces({"kubernetes.io/metadata.name": platform.namespace})


def namespaces(labels: dict[str, str]) -> dict[str, Any]:
    """All pods in the namespaces with these labels; without any, in all namespaces."""
    return {"namespaceSelector": {"matchLabels": labels} if labels else {}}


def _ports(ports: dict[str, int]) -> list[dict[str, Any]]:
    return [{"protocol": "TCP", "port": port} for port in ports.values()]
