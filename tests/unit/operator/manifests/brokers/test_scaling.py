"""Tests of the autoscaler against the one in the specification."""

import yaml

from kafscale.operator.manifests.brokers.scaling import autoscaler
from unit.operator.manifests.clusters import case, cluster

SPECIFIED = """
scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: production-broker}
minReplicas: 3
maxReplicas: 20
metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}
  - type: Resource
    resource: {name: memory, target: {type: Utilization, averageUtilization: 80}}
  - type: Pods
    pods:
      metric: {name: kafscale_produce_requests_per_second}
      target: {type: AverageValue, averageValue: "1000"}
behavior:
  scaleDown:
    stabilizationWindowSeconds: 300
    policies: [{type: Percent, value: 10, periodSeconds: 60}]
  scaleUp:
    stabilizationWindowSeconds: 0
    policies:
      - {type: Percent, value: 100, periodSeconds: 15}
      - {type: Pods, value: 4, periodSeconds: 15}
    selectPolicy: Max
"""


def bounds(replicas, **desired):
    spec = {"brokers": {"replicas": replicas}, "s3": {"bucket": "records"}, "autoscaling": desired}
    built = autoscaler(cluster(spec))
    assert built is not None
    return built["spec"]["minReplicas"], built["spec"]["maxReplicas"]


def test_sample_has_the_autoscaler_of_the_specification():
    built = autoscaler(case("production")[0])
    assert built is not None
    assert built["spec"] == yaml.safe_load(SPECIFIED)


def test_autoscaler_can_be_disabled():
    assert autoscaler(case("try_out")[0]) is None


def test_minimum_is_min_replicas_or_replicas():
    assert bounds(5) == (5, 20)
    assert bounds(5, minReplicas=2) == (2, 20)


def test_maximum_is_never_below_the_minimum():
    assert bounds(30) == (30, 30)
