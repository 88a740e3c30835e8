"""Whose an etcd is that was given: it is one cluster's alone. Pure.

The law: the keys of all clusters are the same, so two of them on one etcd would take each other's
brokers and topics for their own. Where several name the same, the one that was there first has it.
"""

from collections.abc import Callable, Iterable

import msgspec

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests.names import EtcdAccess
from kafscale.operator.spec.cluster import Cluster, read_cluster

Resolve = Callable[[Cluster], EtcdAccess | None]
"""Which etcd a cluster uses, as `access` says."""


def holder(
    cluster: Cluster, endpoints: Iterable[str], all_: Iterable[Manifest], of: Resolve
) -> str:
    """The cluster before ours that uses one of these endpoints, as NAMESPACE/NAME; or nobody."""
    wanted = set(endpoints)
    for body in sorted(all_, key=_age):
        if body["metadata"]["uid"] == cluster.uid:
            break
        try:
            other = read_cluster(body)
        except msgspec.ValidationError:
            continue  # Nobody looks after it.
        access = of(other)
        if access and not access.is_managed and wanted & set(access.endpoints):
            return f"{other.namespace}/{other.name}"
    return ""


def _age(body: Manifest) -> tuple[str, str, str]:
    metadata = body["metadata"]
    return metadata.get("creationTimestamp", ""), metadata["namespace"], metadata["name"]
