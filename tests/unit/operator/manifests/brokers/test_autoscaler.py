"""The autoscaler, beside the one that the specification writes out."""

import yaml

from kafscale.operator.manifests.brokers.autoscaler import autoscaler
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


def bounds(replicas, **wanted):
    spec = {"brokers": {"replicas": replicas}, "s3": {"bucket": "records"}, "autoscaling": wanted}
    made = autoscaler(cluster(spec))
    assert made is not None
    return made["spec"]["minReplicas"], made["spec"]["maxReplicas"]


def test_the_sample_has_the_autoscaler_of_the_specification():
    made = autoscaler(case("production")[0])
    assert made is not None
    assert made["spec"] == yaml.safe_load(SPECIFIED)


def test_there_is_none_where_none_is_wanted():
    assert autoscaler(case("try_out")[0]) is None


def test_the_least_is_what_was_asked_for():
    assert bounds(5) == (5, 20)
    assert bounds(5, minReplicas=2) == (2, 20)


def test_the_most_is_never_below_the_least():
    assert bounds(30) == (30, 30)
