"""The nodes of the cluster: all of them are this machine, in different zones."""

import asyncio
import datetime as dt
from collections.abc import Mapping

from kafscale.operator.kube.api import LEASES, NODES
from services.kubernetes.kubelet.api import Api, Manifest
from services.kubernetes.kubelet.status import now
from services.kubernetes.namespaces import GATEWAY

REGION = "test-region-1"
ZONES: Mapping[str, str] = {"node-a": f"{REGION}a", "node-b": f"{REGION}b", "node-c": f"{REGION}c"}
RENEWAL_S = 10
LEASE_S = 40
_NAMESPACE = "kube-node-lease"
_RESOURCES = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "200"}


def node(name: str, zone: str) -> Manifest:
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/region": REGION,
        "topology.kubernetes.io/zone": zone,
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def node_status(name: str) -> Manifest:
    since = {"lastHeartbeatTime": now(), "lastTransitionTime": now()}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it is"}
    return {
        "conditions": [ready | since],
        "addresses": [
            {"type": "InternalIP", "address": GATEWAY},
            {"type": "Hostname", "address": name},
        ],
        "capacity": _RESOURCES,
        "allocatable": _RESOURCES,
    }


async def register(api: Api, name: str, zone: str) -> None:
    """Create a node that is ready and accepts pods."""
    await api.create(NODES.path(), node(name, zone))
    await api.patch(NODES.path(name=name, subresource="status"), {"status": node_status(name)})
    await api.patch(NODES.path(name=name), {"spec": {"taints": None}})


async def keep_alive(api: Api, name: str) -> None:
    """Renew the lease of a node, forever."""
    while True:
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_S,
            "renewTime": dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        lease = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "spec": spec}
        if await api.patch(LEASES.path(_NAMESPACE, name), {"spec": spec}) is None:
            await api.create(LEASES.path(_NAMESPACE), lease | {"metadata": {"name": name}})
        await asyncio.sleep(RENEWAL_S)
