"""The ServiceAccount of the brokers and its role: to read the Secret of the bucket's keys.

Invariants: the operator grants access to this Secret to no other account. No token of the account
is in a pod unless workload identity puts it there.
"""

from typing import Any

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.spec.cluster import Cluster


def service_account(cluster: Cluster) -> Manifest:
    """The ServiceAccount of the brokers."""
    annotations = cluster.spec.brokers.service_account_annotations
    more = {"annotations": annotations} if annotations else {}
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _metadata(cluster, **more),
        "automountServiceAccountToken": False,
    }


def role(cluster: Cluster) -> Manifest:
    """What the account may read."""
    s3 = cluster.spec.s3
    read = {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": [s3.secret],
        "verbs": ["get"],
    }
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": _metadata(cluster),
        "rules": [read] if s3.secret else [],
    }


def binding(cluster: Cluster) -> Manifest:
    """Binds the role to the account."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": _metadata(cluster),
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": names.broker_account(cluster),
        },
        "subjects": [
            {
                "kind": "ServiceAccount",
                "name": names.broker_account(cluster),
                "namespace": cluster.namespace,
            }
        ],
    }


def _metadata(cluster: Cluster, **more: Any) -> dict[str, Any]:
    return names.metadata(cluster, names.broker_account(cluster), names.BROKER_APP, **more)
