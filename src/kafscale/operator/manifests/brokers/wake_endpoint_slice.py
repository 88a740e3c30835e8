"""The EndpointSlice that routes clients of a cluster at zero to the operator's wake listener.

Invariant: it has only the ports for Kafka clients, so that a scrape of metrics wakes no cluster.
"""

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers.listeners import client_ports
from kafscale.operator.spec.cluster import Cluster


def name(cluster: Cluster) -> str:
    return f"{names.broker(cluster)}-wake"


def endpoint_slice(cluster: Cluster, address: str, port: int) -> Manifest:
    """An endpoint of the client Service besides its pods; all of its ports lead to `port`."""
    metadata = names.metadata(cluster, name(cluster), names.BROKER_APP)
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
