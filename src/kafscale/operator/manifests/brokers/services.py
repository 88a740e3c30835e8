"""The Services of the brokers, the ServiceMonitor, and the EndpointSlice of the wake listener.

Invariants: the control plane and the metrics are never exposed outside of Kubernetes. Each broker
is scraped once, even if it is not ready, through the headless Service. The EndpointSlice has only
the ports for Kafka clients, so that a scrape of metrics wakes no cluster.
"""

from typing import Any, Final

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers.listeners import METRICS, OWN_PORTS, client_ports
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster

ROLE: Final = "kafscale.io/service"
"""The label that distinguishes the two."""
HEADLESS: Final = "headless"
CLIENT: Final = "client"


def headless(cluster: Cluster) -> Manifest:
    """The headless Service, which gives each broker a host name."""
    ports = {**client_ports(cluster), **OWN_PORTS}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(cluster, names.broker_headless(cluster), HEADLESS),
        "spec": {
            "clusterIP": "None",
            # Metadata responses name a broker as soon as it has registered, and the operator
            # queries brokers that are not ready.
            "publishNotReadyAddresses": True,
            "selector": names.labels(cluster, names.BROKER_APP),
            "ports": _ports(ports),
        },
    }


def client(cluster: Cluster) -> Manifest:
    """The Service that clients bootstrap from."""
    desired = cluster.spec.service
    ports = client_ports(cluster)
    if desired.type == "ClusterIP":
        ports |= OWN_PORTS
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(cluster, names.broker(cluster), CLIENT, desired.annotations),
        "spec": {
            "type": desired.type,
            "selector": names.labels(cluster, names.BROKER_APP),
            "ports": _ports(ports),
        },
    }


def bootstrap_servers(cluster: Cluster, platform: Platform) -> str:
    """The bootstrap servers for clients inside Kubernetes, as host:port."""
    service = f"{names.broker(cluster)}.{cluster.namespace}.svc.{platform.cluster_domain}"
    return f"{service}:{names.KAFKA_PORT}"


def _metadata(
    cluster: Cluster, name: str, role: str, annotations: dict[str, str] | None = None
) -> dict[str, Any]:
    more = {"annotations": annotations} if annotations else {}
    metadata = names.metadata(cluster, name, names.BROKER_APP, **more)
    metadata["labels"][ROLE] = role
    return metadata


def _ports(ports: dict[str, int]) -> list[dict[str, Any]]:
    return [
        {"name": name, "port": port, "targetPort": port, "protocol": "TCP"}
        for name, port in ports.items()
    ]


def service_monitor(cluster: Cluster) -> Manifest | None:
    """The ServiceMonitor, if enabled."""
    desired = cluster.spec.monitoring
    if not desired.service_monitor:
        return None
    metadata = names.metadata(cluster, names.broker(cluster), names.BROKER_APP)
    # The operator's own labels win: it selects its objects by them.
    metadata["labels"] = {**desired.labels, **metadata["labels"]}
    selected = {**names.labels(cluster, names.BROKER_APP), ROLE: HEADLESS}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": selected},
            "namespaceSelector": {"matchNames": [cluster.namespace]},
            # Every series gets a label with the cluster's name.
            "targetLabels": ["cluster"],
            "endpoints": [
                {"port": METRICS, "path": "/metrics", "interval": f"{desired.interval_seconds}s"}
            ],
        },
    }


def wake_slice_name(cluster: Cluster) -> str:
    return f"{names.broker(cluster)}-wake"


def endpoint_slice(cluster: Cluster, address: str, port: int) -> Manifest:
    """An endpoint of the client Service besides its pods; all of its ports lead to `port`."""
    metadata = names.metadata(cluster, wake_slice_name(cluster), names.BROKER_APP)
    metadata["labels"] |= {
        "kubernetes.io/service-name": names.broker(cluster),
        # So that Kubernetes' own controller leaves it alone.
        "endpointslice.kubernetes.io/managed-by": names.MANAGED_BY,
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": "IPv6" if ":" in address else "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [
            {"name": name, "port": port, "protocol": "TCP"} for name in client_ports(cluster)
        ],
    }
