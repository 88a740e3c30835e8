"""Tests of autoscalers on the test cluster: values set by tests, real controllers.

No kubelet runs: these pods want a node that does not exist, and are reported as running.
"""

from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from kafscale.operator.kube.api import AUTOSCALERS, PODS, STATEFUL_SETS
from services.kubernetes.kube_client import KubeClient, Manifest, has_condition
from services.kubernetes.metrics_api import MetricsApi

LABELS = {"app": "web"}


class ScalingMetric(NamedTuple):
    """A metric of an autoscaler, with a value of twice the target, and a very low one."""

    name: str
    metric: Manifest
    high: str
    low: str


CPU = ScalingMetric(
    "cpu",
    {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
    },
    high="100m",
    low="10m",
)
REQUESTS = ScalingMetric(
    "requests_per_second",
    {
        "type": "Pods",
        "pods": {
            "metric": {"name": "requests_per_second"},
            "target": {"type": "AverageValue", "averageValue": "50"},
        },
    },
    high="100",
    low="1",
)


def stateful_set(replicas: int) -> Manifest:
    container = {"name": "web", "image": "web", "resources": {"requests": {"cpu": "100m"}}}
    pod = {"nodeSelector": {"no-such": "node"}, "containers": [container]}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web"},
        "spec": {
            "serviceName": "web",
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": pod},
        },
    }


def autoscaler(metric: Manifest) -> Manifest:
    target = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": 1,
            "maxReplicas": 5,
            "metrics": [metric],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }


def has_replicas(count: int):
    return lambda manifest: (
        manifest["spec"]["replicas"] == count and manifest["status"]["replicas"] == count
    )


def mark_running(kube: KubeClient, namespace: str, pod: str) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
    status = {"phase": "Running", "startTime": now, "conditions": [ready]}
    kube.patch(PODS, namespace, pod, {"status": status}, subresource="status")


def test_stateful_sets_create_pods(kube: KubeClient, namespace: str) -> None:
    kube.apply(stateful_set(2), namespace)
    kube.wait_for(STATEFUL_SETS, namespace, "web", has_replicas(2))
    names = [pod["metadata"]["name"] for pod in kube.list(PODS, namespace, LABELS)]
    assert names == ["web-0", "web-1"]


@pytest.mark.parametrize(
    "scaling_metric", [CPU, REQUESTS], ids=lambda scaling_metric: scaling_metric.name
)
def test_metrics_scale_up_and_down(
    kube: KubeClient, namespace: str, metrics: MetricsApi, scaling_metric: ScalingMetric
) -> None:
    kube.apply(stateful_set(2), namespace)
    kube.wait_for(STATEFUL_SETS, namespace, "web", has_replicas(2))
    for pod in ("web-0", "web-1"):
        mark_running(kube, namespace, pod)

    metrics.set_value(namespace, scaling_metric.name, scaling_metric.high)
    kube.apply(autoscaler(scaling_metric.metric), namespace)
    kube.wait_for(STATEFUL_SETS, namespace, "web", has_replicas(4))
    for pod in ("web-2", "web-3"):
        mark_running(kube, namespace, pod)

    metrics.set_value(namespace, scaling_metric.name, scaling_metric.low)
    kube.wait_for(STATEFUL_SETS, namespace, "web", has_replicas(1))


def test_unknown_metrics_do_not_scale(
    kube: KubeClient, namespace: str, metrics: MetricsApi
) -> None:
    kube.apply(stateful_set(2), namespace)
    kube.wait_for(STATEFUL_SETS, namespace, "web", has_replicas(2))
    metrics.clear(namespace)
    kube.apply(autoscaler(CPU.metric), namespace)
    kube.wait_for(
        AUTOSCALERS,
        namespace,
        "web",
        lambda manifest: has_condition(manifest, "ScalingActive", "False"),
    )
    kube.wait_for(STATEFUL_SETS, namespace, "web", has_replicas(2))
