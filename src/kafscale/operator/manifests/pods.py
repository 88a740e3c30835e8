"""Parts of pod specs, and how pods are read as the API server returns them.

Invariants: placement is a preference only, because pods that share a node are better than missing
ones. No pod runs as root, gains privileges, or writes to its image: writable paths are volumes.
That satisfies the "restricted" Pod Security Standard.
"""

from typing import Any, Final

from kafscale.metadata.schema.protobuf import parse_time
from kafscale.operator.kube.api import Manifest

REVISION: Final = "controller-revision-hash"
"""The label with the revision of the StatefulSet's template."""

POD_NAME: Final = "$(POD_NAME)"
"""Replaced by the kubelet in commands, and in variables after the one of this name."""
HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
USER_ID: Final = 65532
"""The `nonroot` user of images without root."""


def pod_name() -> dict[str, Any]:
    """The variable that `POD_NAME` refers to."""
    return field("POD_NAME", "metadata.name")


def field(name: str, path: str) -> dict[str, Any]:
    """A variable with the value of a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def pod_anti_affinity(labels: dict[str, str]) -> dict[str, Any]:
    """The `affinity` of pods that should not share a node."""
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": labels}}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def topology_spread(labels: dict[str, str], *topology_keys: str) -> list[dict[str, Any]]:
    """The `topologySpreadConstraints` of pods that should be spread evenly."""
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": labels},
        }
        for key in topology_keys
    ]


def pod_security() -> dict[str, Any]:
    """The `securityContext` of a pod; its volumes belong to the group of its processes."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER_ID,
        "runAsGroup": USER_ID,
        "fsGroup": USER_ID,
        # Otherwise all files of a volume are visited at every start.
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> dict[str, Any]:
    """The `securityContext` of a container."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def ordinal(pod: Manifest) -> int:
    """The ordinal of a pod in its StatefulSet, which is the broker's id.

    >>> ordinal({"metadata": {"name": "production-broker-12"}})
    12
    """
    return int(pod["metadata"]["name"].rpartition("-")[2])


def revision(pod: Manifest) -> str:
    """The revision of the template that a pod was created from; empty if unknown."""
    labels: dict[str, str] = pod["metadata"].get("labels") or {}
    return labels.get(REVISION, "")


def is_ready(pod: Manifest) -> bool:
    """Whether its readiness probes succeed; a terminating pod may still be ready."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def ready_ms(pod: Manifest) -> int:
    """Since when a pod is ready, in milliseconds since 1970; 0 if it is not, or unknown."""
    for each in (pod.get("status") or {}).get("conditions") or []:
        if each["type"] == "Ready" and each["status"] == "True":
            since = each.get("lastTransitionTime")
            return parse_time(since) if since else 0
    return 0


def is_terminating(pod: Manifest) -> bool:
    """Whether a pod was deleted and has not terminated yet."""
    return bool(pod["metadata"].get("deletionTimestamp"))
