"""The EndpointSlice that leads clients of a cluster that sleeps to the operator's doorbell.

The law: it names the ports for Kafka clients only, so that no scrape of metrics wakes anybody.
"""

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers.listeners import client_ports
from kafscale.operator.spec.cluster import Cluster


def name(cluster: Cluster) -> str:
    return f"{names.broker(cluster)}-doorbell"


def endpoint_slice(cluster: Cluster, address: str, port: int) -> Manifest:
    """An endpoint of the client Service besides its pods; all its ports lead to the one."""
    metadata = names.metadata(cluster, name(cluster), names.BROKER_APP)
    metadata["labels"] |= {
        "kubernetes.io/service-name": names.broker(cluster),
        # Kubernetes' own controller leaves alone what somebody else manages.
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
