"""Tests of the NetworkPolicy with a small evaluator of policies."""

import pytest

from kafscale.operator.manifests.brokers import network_policy
from unit.operator.manifests.clusters import PLATFORM, case, cluster

OPERATOR = {"kubernetes.io/metadata.name": "kafscale-system"}
PROMETHEUS = {"kubernetes.io/metadata.name": "monitoring"}
OWN = {"kubernetes.io/metadata.name": "kafscale"}
OTHER_NAMESPACE = {"kubernetes.io/metadata.name": "shop"}
BROKER = {"app": "kafscale-broker", "cluster": "production"}


def allows(built, port, namespace, pod):
    """Whether a pod with these labels, in a namespace with those, may connect to a port."""
    policy = network_policy.policy(built, PLATFORM)
    for rule in policy["spec"]["ingress"]:
        sources = rule.get("from")
        if port in {each["port"] for each in rule["ports"]} and (
            sources is None or any(_matches(each, namespace, pod) for each in sources)
        ):
            return True
    return False


def _matches(source, namespace, pod):
    """Whether a source selects a pod; the default namespace is the policy's own."""
    desired = source.get("namespaceSelector", {"matchLabels": OWN}).get("matchLabels", {})
    labels = source.get("podSelector", {}).get("matchLabels", {})
    return desired.items() <= namespace.items() and labels.items() <= pod.items()


@pytest.mark.parametrize(
    ("namespace", "pod", "expected"),
    [
        (OPERATOR, {}, {9092, 9093}),
        (PROMETHEUS, {}, {9092, 9093}),
        (OWN, BROKER, {9092, 9093}),
        (OWN, {"app": "shop"}, {9092}),
        (OTHER_NAMESPACE, BROKER, {9092}),
    ],
)
def test_only_clients_may_connect_from_anywhere(namespace, pod, expected):
    built = case("production")[0]
    assert {port for port in (22, 9092, 9093) if allows(built, port, namespace, pod)} == expected


def test_separate_control_port_is_closed_to_prometheus():
    built = case("everything")[0]
    assert allows(built, 9095, OPERATOR, {})
    assert allows(built, 9093, {"purpose": "metrics"}, {})
    assert not allows(built, 9095, {"purpose": "metrics"}, {})


def test_empty_labels_allow_all_namespaces():
    spec = {
        "brokers": {},
        "s3": {"bucket": "records"},
        "networkPolicy": {"monitoringNamespaceLabels": {}},
    }
    assert allows(cluster(spec), 9093, OTHER_NAMESPACE, {})


def test_network_policy_can_be_disabled():
    assert network_policy.policy(case("try_out")[0], PLATFORM) is None
