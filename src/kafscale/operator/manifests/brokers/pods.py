"""Reads pods of StatefulSets, as the API server returns them."""

from typing import Final

from kafscale.metadata.schema.protobuf import parse_time
from kafscale.operator.kube.api import Manifest

REVISION: Final = "controller-revision-hash"
"""The label with the revision of the StatefulSet's template."""


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
