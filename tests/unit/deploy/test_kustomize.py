"""Tests of config/: kustomize renders it, and the operator has just the permissions it needs."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from kafscale.config.model import SETTINGS
from kafscale.operator.control_certificates import CA_SECRET
from kafscale.operator.kube.api import ALL, LEASES

CONFIG = Path(__file__).parents[3] / "config"
RBAC = [
    document
    for path in (CONFIG / "rbac").glob("*_role.yaml")
    for document in yaml.safe_load_all(path.read_text())
]


OPERATOR, NODES, LEASE = (
    "kafscale-operator",
    "kafscale-operator-nodes",
    "kafscale-operator-leader-election",
)
"""The roles of the operator."""


def verbs(name: str) -> dict[tuple[str, str], set[str]]:
    """The verbs that a role allows, by API group and resource."""
    allowed: dict[tuple[str, str], set[str]] = {}
    for rule in rules(name):
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                allowed.setdefault((group, resource), set()).update(rule["verbs"])
    return allowed


def rules(name: str) -> list[dict]:
    [role] = [each for each in RBAC if each["metadata"]["name"] == name and "rules" in each]
    return role["rules"]


def kustomize(directory: str) -> list[dict]:
    if (kubectl := shutil.which("kubectl")) is None:
        pytest.skip("There is no kubectl here, which has kustomize in it.")
    command = [kubectl, "kustomize", str(CONFIG / directory)]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert completed.returncode == 0, completed.stderr
    return list(yaml.safe_load_all(completed.stdout))


def test_default_base_is_complete():
    objects = kustomize("default")
    assert sorted(each["kind"] for each in objects) == [
        "ClusterRole",
        "ClusterRole",
        "ClusterRole",
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "CustomResourceDefinition",
        "Deployment",
        "Namespace",
        "Role",
        "RoleBinding",
        "RoleBinding",
        "Service",
        "ServiceAccount",
    ]
    namespaces_used = {each["metadata"].get("namespace") for each in objects} - {None}
    [namespace] = [each for each in objects if each["kind"] == "Namespace"]
    assert namespaces_used == {namespace["metadata"]["name"]}


def bindings(objects: list[dict], kind: str) -> dict[str, str]:
    """The kinds of the roles that the operator's account is bound to, by their names."""
    [account] = [each["metadata"] for each in objects if each["kind"] == "ServiceAccount"]
    result = {}
    for each in objects:
        if each["kind"] == kind:
            [subject] = each["subjects"]
            assert (subject["name"], subject["namespace"]) == (
                account["name"],
                account["namespace"],
            )
            result[each["roleRef"]["name"]] = each["roleRef"]["kind"]
    return result


def deployment(directory: str) -> tuple[dict, dict[str, str | None]]:
    """The pods of the operator, and the environment of their container."""
    [found] = [each for each in kustomize(directory) if each["kind"] == "Deployment"]
    pods = found["spec"]["template"]["spec"]
    [container] = pods["containers"]
    return pods, {each["name"]: each.get("value") for each in container["env"]}


def test_roles_are_bound_to_the_operator_in_its_own_namespace():
    objects = kustomize("default")
    pods, environment = deployment("default")
    assert pods["serviceAccountName"] == OPERATOR
    assert "KAFSCALE_OPERATOR_NAMESPACES" not in environment
    assert bindings(objects, "RoleBinding") == {OPERATOR: "ClusterRole", LEASE: "Role"}
    assert bindings(objects, "ClusterRoleBinding") == {NODES: "ClusterRole"}


def test_all_namespaces_are_an_explicit_choice():
    objects = kustomize("all-namespaces")
    _, environment = deployment("all-namespaces")
    assert environment["KAFSCALE_OPERATOR_NAMESPACES"] == "*"
    both = {OPERATOR: "ClusterRole", NODES: "ClusterRole"}
    assert bindings(objects, "ClusterRoleBinding") == both


def test_service_selects_the_operator():
    objects = {each["kind"]: each for each in kustomize("operator")}
    template = objects["Deployment"]["spec"]["template"]
    [container] = template["spec"]["containers"]
    assert objects["Service"]["spec"]["selector"] == template["metadata"]["labels"]
    ports_by_name = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert {port["targetPort"] for port in objects["Service"]["spec"]["ports"]} == set(
        ports_by_name
    )
    settings = {setting.path: setting for setting in SETTINGS}
    assert ports_by_name["metrics"] == settings["operator.metricsPort"].default
    assert ports_by_name["control"] == settings["operator.controlPort"].default


def test_the_operator_is_set_up_with_variables_that_exist():
    [deployment] = [each for each in kustomize("operator") if each["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    known = {variable for setting in SETTINGS for variable in setting.variables}
    assert {each["name"] for each in container["env"]} - {"POD_NAME"} <= known


def test_the_try_out_is_whole():
    kinds = [each["kind"] for each in kustomize("samples/try-out")]
    assert sorted(kinds) == ["Deployment", "KafscaleCluster", "KafscaleTopic", "Secret", "Service"]


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind != LEASES], ids=lambda k: k.kind)
def test_the_operator_may_do_something_with_every_kind_that_it_knows(kind):
    group = kind.api_version.rpartition("/")[0]
    assert (verbs(OPERATOR) if kind.is_namespaced else verbs(NODES))[group, kind.plural]


def test_only_its_own_namespace_has_its_lease_and_its_ca():
    assert verbs(LEASE) == {
        ("coordination.k8s.io", "leases"): {"get", "create", "update"},
        ("", "secrets"): {"get", "create", "patch"},
    }
    assert ("coordination.k8s.io", "leases") not in verbs(OPERATOR)
    for rule in rules(LEASE):
        if rule["resources"] == ["secrets"] and rule["verbs"] != ["create"]:
            assert rule["resourceNames"] == [CA_SECRET]


def test_no_right_is_a_wildcard_and_none_reaches_into_pods():
    for (group, resource), allowed in verbs(OPERATOR).items():
        assert "*" not in {group, resource, *allowed}
        assert not resource.startswith("pods/")
        assert not allowed & {"escalate", "bind", "impersonate", "deletecollection"}


def test_of_the_whole_cluster_only_nodes_are_listed():
    assert verbs(NODES) == {("", "nodes"): {"list"}}
    assert not {resource for _, resource in verbs(OPERATOR)} & {
        "nodes",
        "namespaces",
        "customresourcedefinitions",
    }
