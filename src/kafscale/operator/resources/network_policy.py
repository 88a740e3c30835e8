"""The NetworkPolicy of the brokers: who may connect to which port.

The law: clients may come from anywhere, for the broker itself tells who they are; metrics are for
Prometheus, and the control plane for the operator's namespace and the brokers among themselves.
While both share a port, whoever may read metrics reaches the control plane too: a port of its own,
with TLS, is what `broker.controlPort` and `control.tls` are for. Where brokers connect to is not
restricted, because the addresses of a bucket are nobody's to know.
"""

from typing import Any

from kafscale.operator.kube.api import Manifest
from kafscale.operator.resources import names
from kafscale.operator.resources.broker_listeners import METRICS, client_ports, control_ports
from kafscale.operator.resources.names import Platform
from kafscale.operator.spec.cluster import Cluster


def policies(cluster: Cluster, platform: Platform) -> list[Manifest]:
    """The policies, if they are wanted."""
    wanted = cluster.spec.network_policy
    if not wanted.enabled:
        return []
    brokers = names.labels(cluster, names.BROKER_APP)
    insiders = [
        _namespaces({"kubernetes.io/metadata.name": platform.namespace}),
        {"podSelector": {"matchLabels": brokers}},
    ]
    ports = control_ports(cluster)
    ingress = [
        {"ports": _ports(client_ports(cluster))},
        {"from": insiders, "ports": _ports(ports)},
        {
            "from": [_namespaces(wanted.monitoring_namespace_labels)],
            "ports": _ports({METRICS: ports[METRICS]}),
        },
    ]
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": names.metadata(cluster, names.broker(cluster), names.BROKER_APP),
        "spec": {
            "podSelector": {"matchLabels": brokers},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    }
    return [policy]


def _namespaces(labels: dict[str, str]) -> dict[str, Any]:
    return {"namespaceSelector": {"matchLabels": labels} if labels else {}}


def _ports(ports: dict[str, int]) -> list[dict[str, Any]]:
    return [{"protocol": "TCP", "port": port} for port in ports.values()]
