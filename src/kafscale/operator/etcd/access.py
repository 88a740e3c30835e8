"""Resolves which etcd the brokers of a cluster use, and whether they may use it. Pure.

The first of these wins: the endpoints in the resource, the etcd of Kubernetes if the resource asks
for it, the endpoints in the operator's settings, a managed etcd.

Invariants:

* An etcd is never silently replaced by another one, because brokers would take the empty store for
  the truth. So if the etcd of Kubernetes is asked for and cannot be found, there is no access until
  the resource is changed; and a cluster with a managed etcd keeps it, even if the operator's
  settings later name endpoints.
* An etcd may be used by one cluster only: all clusters use the same keys, so two of them would mix
  up brokers and topics, and a tenant could read those of another. If several name the same external
  etcd, the oldest one uses it; no other cluster may name a managed etcd.
* Objects of a deleted cluster with the same name are not touched, and nothing is created before
  Kubernetes has deleted them. Their bootstrap config would say that the cluster has formed, and
  their members would respond in place of the new ones. Objects without an owner, as after a
  deletion with `--cascade=orphan`, may be adopted.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kafscale.net import address
from kafscale.net.address import Address, canonical_ip
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
    cluster: Cluster,
    endpoints: Sequence[str],
    bodies: Iterable[Manifest],
    resolve: Resolve,
    etcd_objects: Iterable[Manifest] = (),
) -> str:
    """The other cluster that uses one of these endpoints, as NAMESPACE/NAME; empty if none does.

    An external etcd belongs to the oldest cluster that names it, a managed one to its cluster.
    `etcd_objects` are the pods and Services of managed etcds.
    """
    hosts = [_host(endpoint) for endpoint in endpoints]
    for each in etcd_objects:
        owner = each["metadata"]["namespace"], each["metadata"]["labels"]["cluster"]
        if owner != (cluster.namespace, cluster.name) and not _addresses(each).isdisjoint(hosts):
            return "/".join(owner)
    is_older = True
    for body in sorted(bodies, key=_age):
        if body["metadata"]["uid"] == cluster.uid:
            is_older = False
            continue
        try:
            other = read_cluster(body)
        except msgspec.ValidationError:
            continue  # It is not reconciled.
        access = resolve(other)
        if access is None:
            continue
        if access.is_managed:
            is_used = any(_is_host_of(other, host) for host in hosts)
        else:
            is_used = is_older and not set(endpoints).isdisjoint(access.endpoints)
        if is_used:
            return f"{other.namespace}/{other.name}"
    return ""


def _host(endpoint: str) -> str:
    """The host of an endpoint; names inside Kubernetes without their domain.

    >>> _host("https://shop-etcd.shops.svc.cluster.local:2379"), _host("[fd00::1]:2379")
    ('shop-etcd.shops', 'fd00::1')
    """
    try:
        host = address.parse(endpoint.rpartition("://")[2], names.ETCD_CLIENT_PORT).host
    except ValueError:
        return endpoint
    host = canonical_ip(host.lower().rstrip("."))
    return host.partition(".svc.")[0].removesuffix(".svc")


def _is_host_of(cluster: Cluster, host: str) -> bool:
    """Whether a host is a Service or a pod of the managed etcd of a cluster."""
    services = (names.etcd(cluster), names.etcd_headless(cluster))
    return any(
        host == name or host.endswith(f".{name}")
        for name in (f"{service}.{cluster.namespace}" for service in services)
    )


def _addresses(etcd_object: Manifest) -> set[str]:
    """The IP addresses of a pod or Service."""
    spec, status = etcd_object.get("spec") or {}, etcd_object.get("status") or {}
    pod_ips = [each.get("ip", "") for each in status.get("podIPs") or ()]
    found = [*(spec.get("clusterIPs") or ()), spec.get("clusterIP"), status.get("podIP"), *pod_ips]
    return {canonical_ip(each) for each in found if each and each != "None"}


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
