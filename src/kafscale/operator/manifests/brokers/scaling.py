"""The HorizontalPodAutoscaler and the PodDisruptionBudget of the brokers.

Invariants: brokers are added fast and removed slowly, and nodes are drained one broker at a time. A
cluster never has fewer brokers than `spec.brokers.replicas`, or `minReplicas` if set, even if
`maxReplicas` is lower.
"""

from typing import Any, Final

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.spec.cluster import Cluster

PRODUCE_RATE: Final = "kafscale_produce_requests_per_second"
"""The metric of a broker, as an adapter of custom metrics provides it."""


def autoscaler(cluster: Cluster) -> Manifest | None:
    """The autoscaler, if enabled."""
    desired = cluster.spec.autoscaling
    if not desired.enabled:
        return None
    minimum = cluster.spec.replicas_min
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": names.metadata(cluster, names.broker(cluster), names.BROKER_APP),
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "name": names.broker(cluster),
            },
            "minReplicas": minimum,
            "maxReplicas": max(minimum, desired.max_replicas),
            "metrics": [
                _utilization("cpu", desired.target_cpu_utilization),
                _utilization("memory", desired.target_memory_utilization),
                _produce_rate(desired.target_produce_requests_per_second),
            ],
            "behavior": _behavior(),
        },
    }


def _utilization(resource: str, percent: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": resource, "target": target}}


def _produce_rate(per_second: int) -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": str(per_second)}
    return {"type": "Pods", "pods": {"metric": {"name": PRODUCE_RATE}, "target": target}}


def _behavior() -> dict[str, Any]:
    return {
        "scaleDown": {
            "stabilizationWindowSeconds": 300,
            "policies": [{"type": "Percent", "value": 10, "periodSeconds": 60}],
        },
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "policies": [
                {"type": "Percent", "value": 100, "periodSeconds": 15},
                {"type": "Pods", "value": 4, "periodSeconds": 15},
            ],
            "selectPolicy": "Max",
        },
    }


def pod_disruption_budget(cluster: Cluster) -> Manifest:
    """The budget; a broker that is not ready serves no clients and may always be evicted."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": names.metadata(cluster, names.broker(cluster), names.BROKER_APP),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": names.labels(cluster, names.BROKER_APP)},
        },
    }
