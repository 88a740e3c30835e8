"""Which etcd the brokers of a cluster use, and how they reach it. Pure.

The laws: the first that is named wins: the endpoints in the resource, the etcd of Kubernetes where
the resource asks for it, the endpoints that the operator was set up with; where none is named, the
operator runs one. None is ever silently replaced by another: brokers would find an empty store, and
take it for the truth. So where the etcd of Kubernetes is asked for and cannot be seen, there is no
access, and somebody has to say what else to use; and a cluster whose etcd the operator runs already
keeps it, whatever the operator is set up with later.
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
"""Where the pods of the etcd of Kubernetes are, and how they are told from others."""


def resolve(
    cluster: Cluster,
    platform: Platform,
    *,
    settings_endpoints: Sequence[str] = (),
    kube_etcd_endpoints: Sequence[str] = (),
) -> EtcdAccess | None:
    """How brokers reach their etcd; None where the one that is asked for is not to be seen."""
    wanted = cluster.spec.etcd
    if wanted.endpoints:
        return _given(cluster, wanted.endpoints)
    if wanted.use_kube_etcd:
        return _given(cluster, kube_etcd_endpoints) if kube_etcd_endpoints else None
    if settings_endpoints and not _has_managed(cluster):
        return _given(cluster, settings_endpoints)
    return EtcdAccess(
        endpoints=tuple(
            stateful_set.client_url(cluster, platform, index)
            for index in range(wanted.managed.replicas)
        ),
        tls_secret=names.etcd_client_tls(cluster),
        is_managed=True,
    )


def kube_etcd_endpoints(pods: Iterable[Manifest]) -> list[str]:
    """Where the etcd of Kubernetes is, from its pods; on many platforms there are none to see."""
    addresses = ((pod.get("status") or {}).get("podIP", "") for pod in pods)
    return sorted(f"https://{_host(each)}:{names.ETCD_CLIENT_PORT}" for each in addresses if each)


def _has_managed(cluster: Cluster) -> bool:
    """Whether the operator has run an etcd for it so far."""
    return bool((cluster.status.get("etcd") or {}).get("managed"))


def _given(cluster: Cluster, endpoints: Sequence[str]) -> EtcdAccess:
    return EtcdAccess(
        endpoints=tuple(endpoints),
        tls_secret=cluster.spec.etcd.tls_secret_ref,
        credentials_secret=cluster.spec.etcd.credentials_secret_ref,
    )


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
