"""Tests of the chart: a real API server accepts what Helm renders, for all values."""

import http
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
import yaml

from kafscale.operator.kube.api import CLUSTERS, PODS, TOPICS
from services.kubernetes.control_plane import RESTRICTED, ControlPlane
from services.kubernetes.helm import Helm, HelmError
from services.kubernetes.kube_client import APPLY_PATCH, ApiError, KubeClient, Manifest

pytestmark = pytest.mark.usefixtures("definitions")

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "kafscale"
TRY_OUT = yaml.safe_load((CHART / "values-try-out.yaml").read_text())
MONITORING = "monitoring.coreos.com/v1"
RELEASE = "kafscale"
DRY_RUN = urlencode(
    {"dryRun": "All", "fieldManager": "tests", "force": "true", "fieldValidation": "Strict"}
)
CASES = {
    "defaults": {},
    "to try out": TRY_OUT,
    "some namespaces": {
        "operator": {"namespaces": ["default", "kube-public"], "allowKubeEtcd": True}
    },
    "all namespaces": {"operator": {"namespaces": ["*"]}},
    "all values": {
        "fullnameOverride": "streams",
        "commonLabels": {"team": "data"},
        "imagePullSecrets": [{"name": "registry-keys"}],
        "operator": {
            "replicas": 3,
            "image": {"repository": "registry.example.com/a", "digest": "sha256:" + "0" * 64},
            "etcdEndpoints": ["etcd-0:2379", "etcd-1:2379"],
            "allowedBuckets": ["default/records", "*/shared/*"],
            "allowedRoles": ["default/arn:aws:iam::1:role/records"],
            "allowedEndpoints": ["default/minio.storage:9000"],
            "allowKubeEtcd": True,
            "controlAddress": "operator.example.com:9094",
            "env": [{"name": "KAFSCALE_LOG_LEVEL", "value": "debug"}],
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "a", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {}},
            "podAnnotations": {"a": "1"},
            "podLabels": {"b": "2"},
            "priorityClassName": "system-cluster-critical",
            "serviceAccount": {
                "name": "custom-account",
                "annotations": {"role": "arn:aws:iam::1:role"},
            },
        },
        "console": {
            "enabled": True,
            "cluster": "production",
            "secrets": ["bucket-keys"],
            "env": [{"name": "KAFSCALE_S3_BUCKET", "value": "records"}],
            "ingress": {
                "host": "console.example.com",
                "className": "nginx",
                "tlsSecret": "console-tls",
                "annotations": {"a": "1"},
            },
            "trustedProxies": ["10.1.0.0/16", "fd00::/8"],
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "a", "operator": "Exists"}],
        },
        "networkPolicy": {"monitoringNamespaceLabels": {"kubernetes.io/metadata.name": None}},
        "minio": {"enabled": True, "storage": {"size": "", "className": "fast"}},
        "monitoring": {"dashboards": {"annotations": {"folder": "Kafscale"}}},
    },
    "operator only": {
        "operator": {"serviceAccount": {"create": False, "name": "custom-account"}},
        "rbac": {"create": False, "userRoles": False},
        "networkPolicy": {"enabled": False},
        "monitoring": {
            "serviceMonitor": {"enabled": False},
            "alerts": {"enabled": False},
            "dashboards": {"enabled": False},
        },
    },
}

every_case = pytest.mark.parametrize("values", CASES.values(), ids=CASES)


@pytest.fixture
def restricted(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace that accepts only pods of the "restricted" standard."""
    with control_plane.namespace(labels=RESTRICTED) as name:
        yield name


def try_apply(kube: KubeClient, manifest: Manifest, namespace: str) -> None:
    """Have the API server validate a manifest (dry run)."""
    kind = kube.kind(manifest["apiVersion"], manifest["kind"])
    metadata = manifest["metadata"]
    path = kind.path(metadata.get("namespace", namespace), metadata["name"])
    kube.request("PATCH", f"{path}?{DRY_RUN}", manifest, APPLY_PATCH)


def by_kind(manifests: list[Manifest]) -> dict[str, list[Manifest]]:
    manifests_by_kind: dict[str, list[Manifest]] = {}
    for manifest in manifests:
        manifests_by_kind.setdefault(manifest["kind"], []).append(manifest)
    return manifests_by_kind


def pods(manifests: list[Manifest]) -> Iterator[Manifest]:
    """One pod per template, as controllers would create it, with the default account."""
    for each in manifests:
        if template := each.get("spec", {}).get("template"):
            claims = each["spec"].get("volumeClaimTemplates", ())
            volumes = [{"name": claim["metadata"]["name"], "emptyDir": {}} for claim in claims]
            pod = template["spec"] | {"serviceAccountName": "default"}
            pod["volumes"] = [*pod["volumes"], *volumes]
            metadata = {"name": "one", **template["metadata"]}
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}


def container_of_deployment(deployment: str, manifests: list[Manifest]) -> Manifest:
    """The only container of a deployment."""
    [manifests_by_kind] = [
        each for each in by_kind(manifests)["Deployment"] if each["metadata"]["name"] == deployment
    ]
    [container] = manifests_by_kind["spec"]["template"]["spec"]["containers"]
    return container


@every_case
def test_every_manifest_is_accepted(helm: Helm, kube: KubeClient, namespace: str, values) -> None:
    manifests = helm.render(RELEASE, CHART, namespace, values)
    assert by_kind(manifests)["Deployment"]
    for manifest in manifests:
        try_apply(kube, manifest, namespace)


@every_case
def test_every_pod_passes_the_restricted_standard(
    helm: Helm, kube: KubeClient, restricted: str, values
) -> None:
    created = list(pods(helm.render(RELEASE, CHART, restricted, values)))
    assert created
    for pod in created:
        kube.request("POST", f"{PODS.path(restricted)}?{DRY_RUN}", pod)


@every_case
def test_helm_lint_passes(helm: Helm, values) -> None:
    output = helm("lint", CHART, "--strict", "--kube-version", "1.33.0", values=values)
    assert "0 chart(s) failed" in output


def test_monitoring_is_rendered_if_its_kinds_exist(helm: Helm, namespace: str) -> None:
    kinds = {"ServiceMonitor", "PrometheusRule"}
    assert not kinds & by_kind(helm.render(RELEASE, CHART, namespace)).keys()
    runbook = "https://example.com/runbook"
    values = {"monitoring": {"alerts": {"runbook": runbook, "labels": {"release": "a"}}}}
    known = helm.render(RELEASE, CHART, namespace, values, api_versions=[MONITORING])
    manifests_by_kind = by_kind(known)
    assert kinds <= manifests_by_kind.keys()
    [rule] = manifests_by_kind["PrometheusRule"]
    assert rule["metadata"]["labels"]["release"] == "a"
    urls = re.findall(r"'runbook_url': '([^'#]*)#", str(rule["spec"]))
    assert set(urls) == {runbook}
    assert rule["spec"]["groups"][0]["rules"][0]["annotations"]["summary"].count("$labels")
    [monitor] = manifests_by_kind["ServiceMonitor"]
    [service] = manifests_by_kind["Service"]
    assert (
        monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    )


def test_roles_are_limited_to_the_watched_namespaces(helm: Helm, namespace: str) -> None:
    def roles(kind: str, case: str) -> dict[tuple[str, str], list[Manifest]]:
        """The rules of the operator's roles, by name and namespace."""
        rendered = by_kind(helm.render(RELEASE, CHART, namespace, CASES[case]))
        return {
            (metadata["name"], metadata.get("namespace", "")): each["rules"]
            for each in rendered[kind]
            if (metadata := each["metadata"])["name"].startswith("kafscale-operator")
        }

    name, lease = "kafscale-operator", ("kafscale-operator-leader-election", namespace)
    everywhere = roles("ClusterRole", "all namespaces")[name, ""]
    assert list(roles("Role", "all namespaces")) == [lease]

    [(_, nodes)] = roles("ClusterRole", "defaults").items()
    assert {resource for rule in nodes for resource in rule["resources"]} == {"nodes"}
    own = roles("Role", "defaults")
    assert list(own) == [(name, namespace), lease]
    assert own[name, namespace] + nodes == everywhere

    some = roles("Role", "some namespaces")
    kube_etcd = ("kafscale-operator-kube-etcd", "kube-system")
    assert list(some) == [(name, "default"), (name, "kube-public"), kube_etcd, lease]
    assert some[name, "default"] == some[name, "kube-public"] == own[name, namespace]
    assert roles("ClusterRole", "some namespaces") == {(name, ""): nodes}


def test_given_variables_override_defaults(helm: Helm, namespace: str) -> None:
    values = CASES["all values"]
    container = container_of_deployment(
        "streams-operator", helm.render(RELEASE, CHART, namespace, values)
    )
    environment = {each["name"]: each.get("value") for each in container["env"]}
    assert len(environment) == len(container["env"])
    assert environment["KAFSCALE_LOG_LEVEL"] == "debug"
    assert environment["KAFSCALE_OPERATOR_ETCD_ENDPOINTS"] == "etcd-0:2379,etcd-1:2379"
    assert environment["KAFSCALE_OPERATOR_ALLOWED_BUCKETS"] == "default/records,*/shared/*"
    assert environment["KAFSCALE_OPERATOR_ALLOW_KUBE_ETCD"] == "true"
    assert environment["KAFSCALE_OPERATOR_OPERATOR_IMAGE"] == container["image"]
    assert container["image"].startswith("registry.example.com/a@sha256:")


def test_console_gets_its_cluster_and_credentials(helm: Helm, namespace: str) -> None:
    values = CASES["all values"]
    container = container_of_deployment(
        "streams-console", helm.render(RELEASE, CHART, namespace, values)
    )
    environment = {each["name"]: each["value"] for each in container["env"]}
    assert environment["KAFSCALE_BOOTSTRAP_SERVERS"] == "production-broker:9092"
    assert environment["KAFSCALE_CONTROL_SERVERS"] == f"production-broker.{namespace}.svc:9095"
    assert environment["KAFSCALE_S3_BUCKET"] == "records"
    assert environment["KAFSCALE_UI_TRUSTED_PROXIES"] == "10.1.0.0/16,fd00::/8"
    secrets = [each["secretRef"]["name"] for each in container["envFrom"]]
    assert secrets == ["kafscale-console", "bucket-keys"]


def test_cluster_and_its_console_use_tls_unless_it_is_disabled(helm: Helm, namespace: str) -> None:
    def protocol_of(spec: Manifest) -> tuple[bool, str | None]:
        values = {**TRY_OUT, "cluster": {**TRY_OUT["cluster"], "spec": spec}}
        rendered = helm.render(RELEASE, CHART, namespace, values)
        console = container_of_deployment("kafscale-console", rendered)
        [cluster] = by_kind(rendered)["KafscaleCluster"]
        environment = {each["name"]: each["value"] for each in console["env"]}
        return cluster["spec"]["tls"]["enabled"], environment.get(
            "KAFSCALE_CLIENT_SECURITY_PROTOCOL"
        )

    spec = TRY_OUT["cluster"]["spec"]
    assert protocol_of(spec) == (True, "SSL")
    assert protocol_of({**spec, "tls": {"enabled": False}}) == (False, None)


def test_unknown_values_are_rejected(helm: Helm, namespace: str) -> None:
    with pytest.raises(HelmError, match="replica"):
        helm.render(RELEASE, CHART, namespace, {"operator": {"replica": 1}})


def test_chart_matches_the_kustomize_base(helm: Helm, namespace: str) -> None:
    """As far as both define a field: variables set by one are defaults in the other."""
    rendered = by_kind(helm.render(RELEASE, CHART, namespace))
    files = sorted((ROOT / "config" / "operator").glob("[ds]*.yaml"))
    for file in files:
        desired = yaml.safe_load(file.read_text())
        [created] = rendered[desired["kind"]]
        assert differences(desired["spec"], created["spec"]) <= {"template.spec.containers.0.image"}


def differences(desired, created, path="") -> set[str]:
    """The paths where the desired value is not the created one."""
    if isinstance(desired, dict) and isinstance(created, dict):
        pairs = [(key, value, created.get(key)) for key, value in desired.items()]
    elif isinstance(desired, list) and isinstance(created, list) and len(desired) <= len(created):
        pairs = [
            (str(index), *pair) for index, pair in enumerate(zip(desired, created, strict=False))
        ]
    else:
        return set() if desired == created else {path.strip(".")}
    return {
        manifests_by_kind
        for key, *pair in pairs
        for manifests_by_kind in differences(*pair, path=f"{path}.{key}")
    }


def test_uninstall_keeps_clusters(
    helm: Helm, control_plane: ControlPlane, kube: KubeClient, namespace: str
) -> None:
    release = namespace  # ClusterRoles are named after it.
    values = {**TRY_OUT, "operator": {"replicas": 0}}
    helm.install(release, CHART, namespace, values)
    cluster = kube.get(CLUSTERS, namespace, "try-out")
    assert cluster is not None
    assert cluster["spec"]["s3"]["endpoint"] == f"http://{release}-kafscale-minio:9000"
    assert kube.get(TOPICS, namespace, "greetings") is not None

    token = control_plane.token(namespace, f"{release}-kafscale-operator")
    operator = control_plane.client(token)
    assert [each["metadata"]["name"] for each in operator.list(CLUSTERS, namespace)] == ["try-out"]
    with pytest.raises(ApiError) as error:
        operator.request("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles")
    assert error.value.status == http.HTTPStatus.FORBIDDEN

    helm.install(release, CHART, namespace, {**values, "commonLabels": {"team": "data"}})
    helm.uninstall(release, namespace)
    for kind, name in ((TOPICS, "greetings"), (CLUSTERS, "try-out")):
        assert kube.delete(kind, namespace, name) is not None
