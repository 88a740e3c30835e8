"""With the rights of config/rbac the operator can do its work, and can give away no others."""

from pathlib import Path

import pytest
import yaml

from kafscale.operator.kube.kinds import (
    AUTOSCALERS,
    CONFIG_MAPS,
    LEASES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    STATEFUL_SETS,
)
from services.kubernetes.control_plane import ControlPlane
from services.kubernetes.kube_client import KubeClient, KubeRefusalError

RBAC = Path(__file__).parents[2] / "config" / "rbac"
LABELS = {"app": "kafscale-broker"}


@pytest.fixture
def operator(control_plane: ControlPlane, namespace: str) -> KubeClient:
    """The operator's own client, in a namespace where it has been set up."""
    for file in ("service_account.yaml", "operator_role.yaml", "leader_election_role.yaml"):
        for body in yaml.safe_load_all((RBAC / file).read_text()):
            for subject in body.get("subjects", ()):
                subject["namespace"] = namespace
            if body["kind"].endswith("Binding"):
                # A namespace of each test: whoever was bound before is gone with theirs.
                body["metadata"]["name"] += f"-{namespace}"
            control_plane.kube.apply(body, namespace)
    token = control_plane.token(namespace, "kafscale-operator")
    return control_plane.client(token)


def named(kind, **more):
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "production-broker"},
        **more,
    }


STATEFUL_SET = named(
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
    return named(ROLES, rules=[READS_A_SECRET | rule])


def test_it_runs_brokers(operator: KubeClient, kube: KubeClient, namespace):
    operator.apply(STATEFUL_SET, namespace)
    name = STATEFUL_SET["metadata"]["name"]
    operator.patch(STATEFUL_SETS, namespace, name, {"spec": {"replicas": 2}}, subresource="scale")
    kube.wait_for(PODS, namespace, f"{name}-1", lambda pod: pod["metadata"]["uid"])
    marked = {"metadata": {"annotations": {"kafscale.io/drained-for": "rollout"}}}
    assert operator.patch(PODS, namespace, f"{name}-1", marked) is not None
    assert operator.delete(PODS, namespace, f"{name}-1") is not None
    assert operator.list(SECRETS, namespace) == []
    assert operator.list(AUTOSCALERS, namespace) == []


def test_it_lets_brokers_read_their_secrets(operator: KubeClient, namespace):
    operator.apply(named(SERVICE_ACCOUNTS), namespace)
    operator.apply(role(resourceNames=["kafscale-s3-credentials"]), namespace)
    reference = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role",
        "name": "production-broker",
    }
    subject = {"kind": "ServiceAccount", "name": "production-broker", "namespace": namespace}
    operator.apply(named(ROLE_BINDINGS, roleRef=reference, subjects=[subject]), namespace)


@pytest.mark.parametrize(
    "rule",
    [
        {"resources": ["pods/exec"], "verbs": ["create"]},
        {"resources": ["nodes"], "verbs": ["delete"]},
        {"resources": ["secrets"], "verbs": ["update"]},
    ],
)
def test_it_gives_away_no_right_that_it_does_not_have(operator: KubeClient, namespace, rule):
    with pytest.raises(KubeRefusalError, match="is attempting to grant RBAC permissions"):
        operator.apply(role(**rule), namespace)


def test_it_leads_in_its_own_namespace_only(operator: KubeClient, namespace):
    lease = named(LEASES, spec={"holderIdentity": "one"})
    written = operator.create(lease, namespace)
    path = LEASES.path(namespace, lease["metadata"]["name"])
    assert operator.request("PUT", path, written)["spec"]["holderIdentity"] == "one"
    with pytest.raises(KubeRefusalError, match="forbidden"):
        operator.create(lease, "default")


def test_it_has_no_business_elsewhere(operator: KubeClient, namespace):
    operator.apply(named(CONFIG_MAPS, data={}), namespace)
    for path in (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/apps/v1/deployments",
        "/api/v1/persistentvolumes",
    ):
        with pytest.raises(KubeRefusalError, match="forbidden"):
            operator.request("GET", path)
