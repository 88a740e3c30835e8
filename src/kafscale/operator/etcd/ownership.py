"""Which cluster owns an etcd, and which cluster its objects belong to. Pure.

Invariants:

* An external etcd may be used by one cluster only: all clusters use the same keys, so two of them
  would mix up brokers and topics. If several name the same etcd, the oldest one uses it.
* Objects of a deleted cluster with the same name are not touched, and nothing is created before
  Kubernetes has deleted them. Their bootstrap config would say that the cluster has formed, and
  their members would respond in place of the new ones. Objects without an owner, as after a
  deletion with `--cascade=orphan`, may be adopted.
"""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from kafscale.operator.etcd.observe import Objects
from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests.names import EtcdAccess
from kafscale.operator.spec.cluster import Cluster, read_cluster

Resolve = Callable[[Cluster], EtcdAccess | None]
"""Resolves the etcd that a cluster uses; see `endpoint_resolution`."""


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
    return [_title(each) for each in _foreign(objects, cluster_uid)]


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


def _title(manifest: Manifest) -> str:
    # Items of a list carry no kind.
    return f"{manifest.get('kind') or 'Pod'} {manifest['metadata']['name']}"
