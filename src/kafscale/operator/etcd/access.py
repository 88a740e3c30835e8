"""Resolves which etcd the brokers of a cluster use, and whether they may use it. Pure.

The first of these wins: the endpoints in the resource, the etcd of Kubernetes if the resource asks
for it, the endpoints in the operator's settings, a managed etcd.

Invariants:

* An etcd is never silently replaced by another one, because brokers would take the empty store for
  the truth. So if the etcd of Kubernetes is asked for and cannot be found, there is no access until
  the resource is changed; and a cluster with a managed etcd keeps it, even if the operator's
  settings later name endpoints.
* An external etcd may be used by one cluster only: all clusters use the same keys, so two of them
  would mix up brokers and topics. If several name the same etcd, the oldest one uses it.
* Objects of a deleted cluster with the same name are not touched, and nothing is created before
  Kubernetes has deleted them. Their bootstrap config would say that the cluster has formed, and
  their members would respond in place of the new ones. Objects without an owner, as after a
  deletion with `--cascade=orphan`, may be adopted.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kafscale.net.address import Address
from kafscale.operator.etcd.observe import Objects
from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.etcd import stateful_set
from kafscale.operator.manifests.names import EtcdAccess, Platform
from kafscale.operator.spec.cluster import Cluster, read_cluster

KUBE_NAMESPACE: Final = "kube-system"
KUBE_LABELS: Final = {"component": "etcd"}
"""Namespace and labels of the pods of Kubernetes' own etcd."""

Resolve = Callable[[Cluster], EtcdAccess | None]
"""Resolves the etcd that a cluster uses."""


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
    is_managed_already = (cluster.status.get("etcd") or {}).get("managed")
    if settings_endpoints and not is_managed_already:
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
    return sorted(f"https://{Address(each, names.ETCD_CLIENT_PORT)}" for each in addresses if each)


def _external(cluster: Cluster, endpoints: Sequence[str]) -> EtcdAccess:
    return EtcdAccess(
        endpoints=tuple(endpoints),
        tls_secret=cluster.spec.etcd.tls_secret_ref,
        credentials_secret=cluster.spec.etcd.credentials_secret_ref,
    )


def current_user(
    cluster: Cluster, endpoints: Iterable[str], bodies: Iterable[Manifest], resolve: Resolve
) -> str:
    """The older cluster that uses one of these endpoints, as NAMESPACE/NAME; empty if none does."""
    ours = set(endpoints)
    for body in sorted(bodies, key=_age):
        if body["metadata"]["uid"] == cluster.uid:
            break
        try:
            other = read_cluster(body)
        except msgspec.ValidationError:
            continue  # It is not reconciled.
        access = resolve(other)
        if access and not access.is_managed and ours & set(access.endpoints):
            return f"{other.namespace}/{other.name}"
    return ""


def _age(body: Manifest) -> tuple[str, str, str]:
    metadata = body["metadata"]
    return metadata.get("creationTimestamp", ""), metadata["namespace"], metadata["name"]


def leftovers(objects: Objects, cluster_uid: str) -> list[str]:
    """The objects of a deleted cluster with the same name, as KIND NAME."""
    return [
        # Items of a list carry no kind.
        f"{each.get('kind') or 'Pod'} {each['metadata']['name']}"
        for each in _foreign(objects, cluster_uid)
    ]


def _foreign(objects: Objects, cluster_uid: str) -> Iterator[Manifest]:
    own = (objects.stateful_set, objects.bootstrap, *objects.secrets.values())
    yield from (each for each in own if each and _owner(each, cluster_uid) != cluster_uid)
    set_uid = objects.stateful_set["metadata"]["uid"] if objects.stateful_set else ""
    yield from (each for each in objects.pods.values() if _owner(each, set_uid) != set_uid)


def _owner(manifest: Manifest, default: str) -> str:
    """The uid of an object's controller, or `default` if it has none."""
    references = manifest["metadata"].get("ownerReferences") or ()
    uids: list[str] = [each["uid"] for each in references if each.get("controller")]
    return uids[0] if uids else default
