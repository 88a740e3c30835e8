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


def verbs(kind: str) -> dict[tuple[str, str], set[str]]:
    """The verbs that a role allows, by API group and resource."""
    allowed: dict[tuple[str, str], set[str]] = {}
    for rule in rules(kind):
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                allowed.setdefault((group, resource), set()).update(rule["verbs"])
    return allowed


def rules(kind: str) -> list[dict]:
    [role] = [each for each in RBAC if each["kind"] == kind]
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
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "CustomResourceDefinition",
        "Deployment",
        "Namespace",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
    ]
    namespaces_used = {each["metadata"].get("namespace") for each in objects} - {None}
    [namespace] = [each for each in objects if each["kind"] == "Namespace"]
    assert namespaces_used == {namespace["metadata"]["name"]}


def test_roles_are_bound_to_the_operator():
    objects = {each["kind"]: each for each in kustomize("default")}
    account = objects["ServiceAccount"]["metadata"]
    pods = objects["Deployment"]["spec"]["template"]["spec"]
    assert pods["serviceAccountName"] == account["name"]
    for binding in ("ClusterRoleBinding", "RoleBinding"):
        [subject] = objects[binding]["subjects"]
        assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
        assert objects[binding]["roleRef"]["name"] in {each["metadata"]["name"] for each in RBAC}


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
    assert verbs("ClusterRole")[group, kind.plural]


def test_only_its_own_namespace_has_its_lease_and_its_ca():
    assert verbs("Role") == {
        ("coordination.k8s.io", "leases"): {"get", "create", "update"},
        ("", "secrets"): {"get", "create", "patch"},
    }
    assert ("coordination.k8s.io", "leases") not in verbs("ClusterRole")
    for rule in rules("Role"):
        if rule["resources"] == ["secrets"] and rule["verbs"] != ["create"]:
            assert rule["resourceNames"] == [CA_SECRET]


def test_no_right_is_a_wildcard_and_none_reaches_into_pods():
    for (group, resource), allowed in verbs("ClusterRole").items():
        assert "*" not in {group, resource, *allowed}
        assert not resource.startswith("pods/")
        assert not allowed & {"escalate", "bind", "impersonate", "deletecollection"}


def test_what_others_own_is_only_looked_at():
    for resource in ("nodes", "namespaces"):
        assert verbs("ClusterRole")["", resource] <= {"get", "list", "watch"}
    definitions = verbs("ClusterRole")["apiextensions.k8s.io", "customresourcedefinitions"]
    assert definitions == {"get", "list", "watch"}
