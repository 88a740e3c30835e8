"""Autoscalers in the world of Kubernetes: made-up figures, real controllers, real StatefulSets.

No kubelet is at work: these pods want a node that does not exist, and are said to run.
"""

from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from kafscale.operator.kube.kinds import AUTOSCALERS, PODS, STATEFUL_SETS
from services.kubernetes.kube_client import KubeClient, Manifest, has_condition
from services.kubernetes.metrics_api import MetricsApi

LABELS = {"app": "web"}


class Figure(NamedTuple):
    """What an autoscaler looks at, and what is twice too much of it, and next to nothing."""

    name: str
    metric: Manifest
    much: str
    little: str


CPU = Figure(
    "cpu",
    {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
    },
    much="100m",
    little="10m",
)
REQUESTS = Figure(
    "requests_per_second",
    {
        "type": "Pods",
        "pods": {
            "metric": {"name": "requests_per_second"},
            "target": {"type": "AverageValue", "averageValue": "50"},
        },
    },
    much="100",
    little="1",
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
    return lambda found: found["spec"]["replicas"] == count and found["status"]["replicas"] == count


def say_that_it_runs(kube: KubeClient, namespace: str, pod: str) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
    status = {"phase": "Running", "startTime": now, "conditions": [ready]}
    kube.patch(PODS, namespace, pod, {"status": status}, subresource="status")


def test_stateful_sets_make_pods(kube: KubeClient, namespace: str) -> None:
    kube.apply(stateful_set(2), namespace)
    kube.wait_for(STATEFUL_SETS, namespace, "web", has_replicas(2))
    names = [pod["metadata"]["name"] for pod in kube.list(PODS, namespace, LABELS)]
    assert names == ["web-0", "web-1"]


@pytest.mark.parametrize("figure", [CPU, REQUESTS], ids=lambda figure: figure.name)
def test_figures_scale_up_and_down(
    kube: KubeClient, namespace: str, metrics: MetricsApi, figure: Figure
) -> None:
    kube.apply(stateful_set(2), namespace)
    kube.wait_for(STATEFUL_SETS, namespace, "web", has_replicas(2))
    for pod in ("web-0", "web-1"):
        say_that_it_runs(kube, namespace, pod)

    metrics.show(namespace, figure.name, figure.much)
    kube.apply(autoscaler(figure.metric), namespace)
    kube.wait_for(STATEFUL_SETS, namespace, "web", has_replicas(4))
    for pod in ("web-2", "web-3"):
        say_that_it_runs(kube, namespace, pod)

    metrics.show(namespace, figure.name, figure.little)
    kube.wait_for(STATEFUL_SETS, namespace, "web", has_replicas(1))


def test_nothing_is_scaled_by_figures_that_nobody_knows(
    kube: KubeClient, namespace: str, metrics: MetricsApi
) -> None:
    kube.apply(stateful_set(2), namespace)
    kube.wait_for(STATEFUL_SETS, namespace, "web", has_replicas(2))
    metrics.hide(namespace)
    kube.apply(autoscaler(CPU.metric), namespace)
    kube.wait_for(
        AUTOSCALERS, namespace, "web", lambda found: has_condition(found, "ScalingActive", "False")
    )
    kube.wait_for(STATEFUL_SETS, namespace, "web", has_replicas(2))
