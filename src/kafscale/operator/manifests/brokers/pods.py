"""Pods of brokers, as the API server shows them, read."""

from typing import Final

from kafscale.metadata.schema.protobuf import parse_time
from kafscale.operator.kube.api import Manifest

REVISION: Final = "controller-revision-hash"
"""The label in which a StatefulSet says which of its templates a pod was made from."""


def ordinal(pod: Manifest) -> int:
    """The number of a pod in its StatefulSet, which is the broker's id.

    >>> ordinal({"metadata": {"name": "production-broker-12"}})
    12
    """
    return int(pod["metadata"]["name"].rpartition("-")[2])


def revision(pod: Manifest) -> str:
    """The template that a pod was made from; empty if that is not said."""
    labels: dict[str, str] = pod["metadata"].get("labels") or {}
    return labels.get(REVISION, "")


def is_ready(pod: Manifest) -> bool:
    """Whether a pod serves, as far as its probes tell; one on its way out may serve still."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def ready_ms(pod: Manifest) -> int:
    """Since when a pod serves, in milliseconds since 1970; 0 if it does not, or nobody says so."""
    for each in (pod.get("status") or {}).get("conditions") or []:
        if each["type"] == "Ready" and each["status"] == "True":
            since = each.get("lastTransitionTime")
            return parse_time(since) if since else 0
    return 0


def is_terminating(pod: Manifest) -> bool:
    """Whether somebody has deleted a pod that has not come to its end yet."""
    return bool(pod["metadata"].get("deletionTimestamp"))
