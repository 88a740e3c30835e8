"""Resolves which etcd the brokers of a cluster use, and how they connect. Pure.

The first of these wins: the endpoints in the resource, the etcd of Kubernetes if the resource asks
for it, the endpoints in the operator's settings, a managed etcd.

Invariants: an etcd is never silently replaced by another one, because brokers would take the empty
store for the truth. So if the etcd of Kubernetes is asked for and cannot be found, there is no
access until the resource is changed; and a cluster with a managed etcd keeps it, even if the
operator's settings later name endpoints.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.etcd import stateful_set
from kafscale.operator.manifests.names import EtcdAccess, Platform
from kafscale.operator.spec.cluster import Cluster

KUBE_NAMESPACE: Final = "kube-system"
KUBE_LABELS: Final = {"component": "etcd"}
"""Namespace and labels of the pods of Kubernetes' own etcd."""


def resolve(
    cluster: Cluster,
    platform: Platform,
    *,
    settings_endpoints: Sequence[str] = (),
    kube_etcd_endpoints: Sequence[str] = (),
) -> EtcdAccess | None:
    """How brokers connect to their etcd; None if the requested one cannot be found."""
    desired = cluster.spec.etcd
    if desired.endpoints:
        return _external(cluster, desired.endpoints)
    if desired.use_kube_etcd:
        return _external(cluster, kube_etcd_endpoints) if kube_etcd_endpoints else None
    if settings_endpoints and not _is_managed_already(cluster):
        return _external(cluster, settings_endpoints)
    return EtcdAccess(
        endpoints=tuple(
            stateful_set.client_url(cluster, platform, index)
            for index in range(desired.managed.replicas)
        ),
        tls_secret=names.etcd_client_tls(cluster),
        is_managed=True,
    )


def kube_etcd_endpoints(pods: Iterable[Manifest]) -> list[str]:
    """The endpoints of Kubernetes' etcd from its pods; many platforms hide them."""
    addresses = ((pod.get("status") or {}).get("podIP", "") for pod in pods)
    return sorted(f"https://{_host(each)}:{names.ETCD_CLIENT_PORT}" for each in addresses if each)


def _is_managed_already(cluster: Cluster) -> bool:
    """Whether the operator runs an etcd for it already."""
    return bool((cluster.status.get("etcd") or {}).get("managed"))


def _external(cluster: Cluster, endpoints: Sequence[str]) -> EtcdAccess:
    return EtcdAccess(
        endpoints=tuple(endpoints),
        tls_secret=cluster.spec.etcd.tls_secret_ref,
        credentials_secret=cluster.spec.etcd.credentials_secret_ref,
    )


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
