"""Who may connect to what: a small judge of policies, and the doors that it finds open."""

import pytest

from kafscale.operator.manifests.brokers import network_policy
from unit.operator.manifests.clusters import PLATFORM, case, cluster

OPERATOR = {"kubernetes.io/metadata.name": "kafscale-system"}
PROMETHEUS = {"kubernetes.io/metadata.name": "monitoring"}
OWN = {"kubernetes.io/metadata.name": "kafscale"}
STRANGER = {"kubernetes.io/metadata.name": "shop"}
BROKER = {"app": "kafscale-broker", "cluster": "production"}


def allows(made, port, namespace, pod):
    """Whether a pod with these labels, in a namespace with those, may connect to a port."""
    policy = network_policy.policy(made, PLATFORM)
    for rule in policy["spec"]["ingress"]:
        sources = rule.get("from")
        if port in {each["port"] for each in rule["ports"]} and (
            sources is None or any(_matches(each, namespace, pod) for each in sources)
        ):
            return True
    return False


def _matches(source, namespace, pod):
    """Whether a pod is one of a source; without a namespace, only the policy's own is meant."""
    wanted = source.get("namespaceSelector", {"matchLabels": OWN}).get("matchLabels", {})
    labels = source.get("podSelector", {}).get("matchLabels", {})
    return wanted.items() <= namespace.items() and labels.items() <= pod.items()


@pytest.mark.parametrize(
    ("namespace", "pod", "expected"),
    [
        (OPERATOR, {}, {9092, 9093}),
        (PROMETHEUS, {}, {9092, 9093}),
        (OWN, BROKER, {9092, 9093}),
        (OWN, {"app": "shop"}, {9092}),
        (STRANGER, BROKER, {9092}),
    ],
)
def test_clients_come_from_anywhere_and_others_do_not(namespace, pod, expected):
    made = case("production")[0]
    assert {port for port in (22, 9092, 9093) if allows(made, port, namespace, pod)} == expected


def test_a_control_plane_of_its_own_is_not_for_prometheus():
    made = case("everything")[0]
    assert allows(made, 9095, OPERATOR, {})
    assert allows(made, 9093, {"purpose": "metrics"}, {})
    assert not allows(made, 9095, {"purpose": "metrics"}, {})


def test_no_labels_let_all_namespaces_read_metrics():
    spec = {
        "brokers": {},
        "s3": {"bucket": "records"},
        "networkPolicy": {"monitoringNamespaceLabels": {}},
    }
    assert allows(cluster(spec), 9093, STRANGER, {})


def test_there_are_none_where_none_are_wanted():
    assert network_policy.policy(case("try_out")[0], PLATFORM) is None
