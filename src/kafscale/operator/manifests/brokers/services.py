"""The Services of the brokers: one that clients begin with, and one that gives each pod a name.

The law: the control plane, which shares a port with the metrics, is never offered to the outside.
"""

from typing import Any, Final

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers.listeners import METRICS, client_ports, control_ports
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster

ROLE: Final = "kafscale.io/service"
"""The label that tells the two apart."""
HEADLESS: Final = "headless"
CLIENT: Final = "client"


def headless(cluster: Cluster) -> Manifest:
    """The Service that gives each broker a name."""
    ports = {**client_ports(cluster), **control_ports(cluster)}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(cluster, names.broker_headless(cluster), HEADLESS),
        "spec": {
            "clusterIP": "None",
            # Clients are told of a broker as soon as it has joined, and the operator asks one that
            # is not ready what it is waiting for.
            "publishNotReadyAddresses": True,
            "selector": names.labels(cluster, names.BROKER_APP),
            "ports": _ports(ports),
        },
    }


def client(cluster: Cluster) -> Manifest:
    """The Service that clients begin with."""
    wanted = cluster.spec.service
    ports = client_ports(cluster)
    if wanted.type == "ClusterIP":
        ports[METRICS] = names.METRICS_PORT
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(cluster, names.broker(cluster), CLIENT, wanted.annotations),
        "spec": {
            "type": wanted.type,
            "selector": names.labels(cluster, names.BROKER_APP),
            "ports": _ports(ports),
        },
    }


def bootstrap_servers(cluster: Cluster, platform: Platform) -> str:
    """What clients inside Kubernetes begin with, as host:port."""
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
