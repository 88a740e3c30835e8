"""Helm and Kustomize grant the operator the same permissions."""

import re

import pytest
import yaml

from kafscale.operator.cluster.scale_to_zero.wake_listener import PORTS
from unit.deploy.chart import CHART, CONFIG, read

PERMISSIONS = read("files/rbac.yaml")
CLUSTER_WIDE = {"nodes"}


def role(file, name):
    documents = yaml.safe_load_all((CONFIG / "rbac" / file).read_text())
    [matching] = [
        each for each in documents if each["metadata"]["name"] == name and "rules" in each
    ]
    return matching["rules"]


def flatten(rules):
    """Return each permission: a verb on a resource of an API group."""
    return sorted(
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    )


@pytest.mark.parametrize(
    ("parts", "file", "name"),
    [
        (("namespaced",), "operator_role.yaml", "kafscale-operator"),
        (("clusterScoped",), "node_role.yaml", "kafscale-operator-nodes"),
        (("leaderElection",), "leader_election_role.yaml", "kafscale-operator-leader-election"),
        (("edit",), "user_roles.yaml", "kafscale-edit"),
        (("view",), "user_roles.yaml", "kafscale-view"),
    ],
)
def test_permissions_equal_those_of_kustomize(parts, file, name):
    ours = [rule for part in parts for rule in PERMISSIONS[part]]
    assert flatten(ours) == flatten(role(file, name))


def test_cluster_scoped_permissions_are_separate():
    def resources(part):
        return {resource for rule in PERMISSIONS[part] for resource in rule["resources"]}

    assert resources("clusterScoped") == CLUSTER_WIDE
    assert not resources("namespaced") & CLUSTER_WIDE


def test_pods_in_kube_system_are_only_listed():
    assert flatten(PERMISSIONS["kubeEtcd"]) == [("", "pods", "list")]


def test_network_policy_allows_the_wake_listener():
    policy = (CHART / "templates" / "operator" / "network_policy.yaml").read_text()
    [(first, last)] = re.findall(r"port: (\d+)\n +endPort: (\d+)", policy)
    assert range(int(first), int(last) + 1) == PORTS
