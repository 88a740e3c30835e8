"""Tests that config/rbac lets the operator do its work, and grants nothing else."""

from pathlib import Path

import pytest
import yaml

from kafscale.operator.kube.api import (
    AUTOSCALERS,
    CONFIG_MAPS,
    LEASES,
    NODES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    STATEFUL_SETS,
)
from services.kubernetes.control_plane import ControlPlane
from services.kubernetes.kube_client import ApiError, KubeClient

RBAC = Path(__file__).parents[2] / "config" / "rbac"
LABELS = {"app": "kafscale-broker"}


@pytest.fixture
def operator(control_plane: ControlPlane, namespace: str) -> KubeClient:
    """A client of the operator's account, in a namespace with its roles."""
    for file in (
        "service_account.yaml",
        "operator_role.yaml",
        "node_role.yaml",
        "leader_election_role.yaml",
    ):
        for body in yaml.safe_load_all((RBAC / file).read_text()):
            for subject in body.get("subjects", ()):
                subject["namespace"] = namespace
            if body["kind"].endswith("Binding"):
                # Each test has its own namespace; former bindings are gone with theirs.
                body["metadata"]["name"] += f"-{namespace}"
            control_plane.kube.apply(body, namespace)
    token = control_plane.token(namespace, "kafscale-operator")
    return control_plane.client(token)


def manifest(kind, **more):
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "production-broker"},
        **more,
    }


STATEFUL_SET = manifest(
    STATEFUL_SETS,
    spec={
        "serviceName": "production-broker-headless",
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {"containers": [{"name": "broker", "image": "kafscale-broker"}]},
        },
    },
)
READS_A_SECRET = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}


def role(**rule):
    return manifest(ROLES, rules=[READS_A_SECRET | rule])


def test_operator_may_run_brokers(operator: KubeClient, kube: KubeClient, namespace):
    operator.apply(STATEFUL_SET, namespace)
    name = STATEFUL_SET["metadata"]["name"]
    operator.patch(STATEFUL_SETS, namespace, name, {"spec": {"replicas": 2}}, subresource="scale")
    kube.wait_for(PODS, namespace, f"{name}-1", lambda pod: pod["metadata"]["uid"])
    marked = {"metadata": {"annotations": {"kafscale.io/drained-for": "rollout"}}}
    assert operator.patch(PODS, namespace, f"{name}-1", marked) is not None
    assert operator.delete(PODS, namespace, f"{name}-1") is not None
    assert operator.get(SECRETS, namespace, "missing") is None
    assert operator.get(AUTOSCALERS, namespace, "missing") is None
    with pytest.raises(ApiError, match="forbidden"):
        operator.list(SECRETS, namespace)


def test_operator_may_grant_brokers_their_secret(operator: KubeClient, namespace):
    operator.apply(manifest(SERVICE_ACCOUNTS), namespace)
    operator.apply(role(resourceNames=["kafscale-s3-credentials"]), namespace)
    reference = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role",
        "name": "production-broker",
    }
    subject = {"kind": "ServiceAccount", "name": "production-broker", "namespace": namespace}
    operator.apply(manifest(ROLE_BINDINGS, roleRef=reference, subjects=[subject]), namespace)


@pytest.mark.parametrize(
    "rule",
    [
        {"resources": ["pods/exec"], "verbs": ["create"]},
        {"resources": ["nodes"], "verbs": ["delete"]},
        {"resources": ["secrets"], "verbs": ["update"]},
    ],
)
def test_operator_cannot_escalate_permissions(operator: KubeClient, namespace, rule):
    with pytest.raises(ApiError, match="is attempting to grant RBAC permissions"):
        operator.apply(role(**rule), namespace)


def test_leases_are_limited_to_its_namespace(operator: KubeClient, namespace):
    lease = manifest(LEASES, spec={"holderIdentity": "one"})
    written = operator.create(lease, namespace)
    path = LEASES.path(namespace, lease["metadata"]["name"])
    assert operator.request("PUT", path, written)["spec"]["holderIdentity"] == "one"
    with pytest.raises(ApiError, match="forbidden"):
        operator.create(lease, "default")


def test_other_namespaces_are_forbidden(operator: KubeClient):
    assert operator.list(NODES) is not None
    for kind in (SECRETS, PODS, STATEFUL_SETS, CONFIG_MAPS):
        with pytest.raises(ApiError, match="forbidden"):
            operator.list(kind, "default")
    with pytest.raises(ApiError, match="forbidden"):
        operator.get(SECRETS, "kube-system", "any")


def test_other_resources_are_forbidden(operator: KubeClient, namespace):
    operator.apply(manifest(CONFIG_MAPS, data={}), namespace)
    for path in (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/apps/v1/deployments",
        "/api/v1/persistentvolumes",
        "/api/v1/namespaces",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ):
        with pytest.raises(ApiError, match="forbidden"):
            operator.request("GET", path)
