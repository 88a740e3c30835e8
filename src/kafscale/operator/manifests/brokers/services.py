"""The Services of the brokers: one for bootstrapping clients, and a headless one.

Invariant: the control plane, which shares a port with the metrics, is never exposed outside.
"""

from typing import Any, Final

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers.listeners import METRICS, client_ports, control_ports
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster

ROLE: Final = "kafscale.io/service"
"""The label that distinguishes the two."""
HEADLESS: Final = "headless"
CLIENT: Final = "client"


def headless(cluster: Cluster) -> Manifest:
    """The headless Service, which gives each broker a host name."""
    ports = {**client_ports(cluster), **control_ports(cluster)}
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
        ports[METRICS] = names.METRICS_PORT
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
