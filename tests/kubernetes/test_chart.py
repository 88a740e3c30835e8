"""The chart: whatever is asked of it, a real API server takes what Helm makes of it."""

import http
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
import yaml

from kafscale.operator.kube.kinds import CLUSTERS, PODS, TOPICS
from services.kubernetes.control_plane import RESTRICTED, ControlPlane
from services.kubernetes.helm import Helm, HelmError
from services.kubernetes.kube_client import APPLY_PATCH, KubeClient, KubeRefusalError, Manifest

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
    "as it is": {},
    "to try out": TRY_OUT,
    "of some namespaces": {"operator": {"namespaces": ["default", "kube-public"]}},
    "with everything said": {
        "fullnameOverride": "streams",
        "commonLabels": {"team": "data"},
        "imagePullSecrets": [{"name": "registry-keys"}],
        "operator": {
            "replicas": 3,
            "image": {"repository": "registry.example.com/a", "digest": "sha256:" + "0" * 64},
            "etcdEndpoints": ["etcd-0:2379", "etcd-1:2379"],
            "controlAddress": "operator.example.com:9094",
            "env": [{"name": "KAFSCALE_LOG_LEVEL", "value": "debug"}],
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "a", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {}},
            "podAnnotations": {"a": "1"},
            "podLabels": {"b": "2"},
            "priorityClassName": "system-cluster-critical",
            "serviceAccount": {"name": "somebody", "annotations": {"role": "arn:aws:iam::1:role"}},
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
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "a", "operator": "Exists"}],
        },
        "networkPolicy": {"monitoringNamespaceLabels": {"kubernetes.io/metadata.name": None}},
        "minio": {"enabled": True, "storage": {"size": "", "className": "fast"}},
        "monitoring": {"dashboards": {"annotations": {"folder": "Kafscale"}}},
    },
    "with nothing but the operator": {
        "operator": {"serviceAccount": {"create": False, "name": "somebody"}},
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
    """A namespace that takes no pods but those of the strictest standard."""
    with control_plane.namespace(labels=RESTRICTED) as name:
        yield name


def try_apply(kube: KubeClient, manifest: Manifest, namespace: str) -> None:
    """Have the API server judge a manifest by all that it knows, and do nothing."""
    kind = kube.kind(manifest["apiVersion"], manifest["kind"])
    metadata = manifest["metadata"]
    path = kind.path(metadata.get("namespace", namespace), metadata["name"])
    kube.request("PATCH", f"{path}?{DRY_RUN}", manifest, APPLY_PATCH)


def by_kind(manifests: list[Manifest]) -> dict[str, list[Manifest]]:
    found: dict[str, list[Manifest]] = {}
    for manifest in manifests:
        found.setdefault(manifest["kind"], []).append(manifest)
    return found


def pods(manifests: list[Manifest]) -> Iterator[Manifest]:
    """One of each, as controllers would make it, were its account and its volumes there."""
    for each in manifests:
        if template := each.get("spec", {}).get("template"):
            claims = each["spec"].get("volumeClaimTemplates", ())
            volumes = [{"name": claim["metadata"]["name"], "emptyDir": {}} for claim in claims]
            pod = template["spec"] | {"serviceAccountName": "default"}
            pod["volumes"] = [*pod["volumes"], *volumes]
            metadata = {"name": "one", **template["metadata"]}
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}


def container_of(deployment: str, manifests: list[Manifest]) -> Manifest:
    """The only container of a deployment."""
    [found] = [
        each for each in by_kind(manifests)["Deployment"] if each["metadata"]["name"] == deployment
    ]
    [container] = found["spec"]["template"]["spec"]["containers"]
    return container


@every_case
def test_every_manifest_is_taken(helm: Helm, kube: KubeClient, namespace: str, values) -> None:
    manifests = helm.render(RELEASE, CHART, namespace, values)
    assert by_kind(manifests)["Deployment"]
    for manifest in manifests:
        try_apply(kube, manifest, namespace)


@every_case
def test_every_pod_passes_the_strictest_standard(
    helm: Helm, kube: KubeClient, restricted: str, values
) -> None:
    made = list(pods(helm.render(RELEASE, CHART, restricted, values)))
    assert made
    for pod in made:
        kube.request("POST", f"{PODS.path(restricted)}?{DRY_RUN}", pod)


@every_case
def test_helm_finds_nothing_to_complain_about(helm: Helm, values) -> None:
    said = helm("lint", CHART, "--strict", "--kube-version", "1.33.0", values=values)
    assert "0 chart(s) failed" in said


def test_monitoring_comes_where_kubernetes_knows_of_it(helm: Helm, namespace: str) -> None:
    kinds = {"ServiceMonitor", "PrometheusRule"}
    assert not kinds & by_kind(helm.render(RELEASE, CHART, namespace)).keys()
    runbook = "https://example.com/runbook"
    values = {"monitoring": {"alerts": {"runbook": runbook, "labels": {"release": "a"}}}}
    known = helm.render(RELEASE, CHART, namespace, values, api_versions=[MONITORING])
    found = by_kind(known)
    assert kinds <= found.keys()
    [rule] = found["PrometheusRule"]
    assert rule["metadata"]["labels"]["release"] == "a"
    urls = re.findall(r"'runbook_url': '([^'#]*)#", str(rule["spec"]))
    assert set(urls) == {runbook}
    assert rule["spec"]["groups"][0]["rules"][0]["annotations"]["summary"].count("$labels")
    [monitor] = found["ServiceMonitor"]
    [service] = found["Service"]
    assert (
        monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    )


def test_rights_are_in_the_namespaces_that_are_looked_after(helm: Helm, namespace: str) -> None:
    everywhere = by_kind(helm.render(RELEASE, CHART, namespace))
    values = CASES["of some namespaces"]
    limited = by_kind(helm.render(RELEASE, CHART, namespace, values))

    def rules(manifests: dict[str, list[Manifest]], kind: str, name: str) -> list[Manifest]:
        return [each for each in manifests[kind] if each["metadata"]["name"] == name]

    name = "kafscale-operator"
    [whole] = rules(everywhere, "ClusterRole", name)
    [around] = rules(limited, "ClusterRole", name)
    roles = rules(limited, "Role", name)
    assert [role["metadata"]["namespace"] for role in roles] == ["default", "kube-public"]
    for role in roles:
        assert role["rules"] + around["rules"] == whole["rules"]
    assert all("secrets" not in rule["resources"] for rule in around["rules"])
    assert [role["metadata"]["namespace"] for role in everywhere["Role"]] == [namespace]


def test_variables_that_are_given_win(helm: Helm, namespace: str) -> None:
    values = CASES["with everything said"]
    container = container_of("streams-operator", helm.render(RELEASE, CHART, namespace, values))
    environment = {each["name"]: each.get("value") for each in container["env"]}
    assert len(environment) == len(container["env"])
    assert environment["KAFSCALE_LOG_LEVEL"] == "debug"
    assert environment["KAFSCALE_OPERATOR_ETCD_ENDPOINTS"] == "etcd-0:2379,etcd-1:2379"
    assert environment["KAFSCALE_OPERATOR_OPERATOR_IMAGE"] == container["image"]
    assert container["image"].startswith("registry.example.com/a@sha256:")


def test_the_console_is_told_of_its_cluster_and_who_may_log_in(helm: Helm, namespace: str) -> None:
    values = CASES["with everything said"]
    container = container_of("streams-console", helm.render(RELEASE, CHART, namespace, values))
    environment = {each["name"]: each["value"] for each in container["env"]}
    assert environment["KAFSCALE_BOOTSTRAP_SERVERS"] == "production-broker:9092"
    assert environment["KAFSCALE_CONTROL_SERVERS"] == "production-broker:9093"
    assert environment["KAFSCALE_S3_BUCKET"] == "records"
    secrets = [each["secretRef"]["name"] for each in container["envFrom"]]
    assert secrets == ["kafscale-console", "bucket-keys"]


def test_values_that_do_not_exist_are_refused(helm: Helm, namespace: str) -> None:
    with pytest.raises(HelmError, match="replica"):
        helm.render(RELEASE, CHART, namespace, {"operator": {"replica": 1}})


def test_it_is_what_kustomize_makes(helm: Helm, namespace: str) -> None:
    """As far as both have a say: variables that one sets, the other leaves at their defaults."""
    render_definitions = by_kind(helm.render(RELEASE, CHART, namespace))
    files = sorted((ROOT / "config" / "operator").glob("[ds]*.yaml"))
    for file in files:
        wanted = yaml.safe_load(file.read_text())
        [made] = render_definitions[wanted["kind"]]
        assert differences(wanted["spec"], made["spec"]) <= {"template.spec.containers.0.image"}


def differences(wanted, made, path="") -> set[str]:
    """Where something is wanted and not made."""
    if isinstance(wanted, dict) and isinstance(made, dict):
        pairs = [(key, value, made.get(key)) for key, value in wanted.items()]
    elif isinstance(wanted, list) and isinstance(made, list) and len(wanted) <= len(made):
        pairs = [(str(index), *pair) for index, pair in enumerate(zip(wanted, made, strict=False))]
    else:
        return set() if wanted == made else {path.strip(".")}
    return {found for key, *pair in pairs for found in differences(*pair, path=f"{path}.{key}")}


def test_a_release_is_installed_and_leaves_clusters_behind(
    helm: Helm, control_plane: ControlPlane, kube: KubeClient, namespace: str
) -> None:
    release = namespace  # ClusterRoles are called after it, and others have theirs.
    values = {**TRY_OUT, "operator": {"replicas": 0}}
    helm.install(release, CHART, namespace, values)
    cluster = kube.get(CLUSTERS, namespace, "try-out")
    assert cluster is not None
    assert cluster["spec"]["s3"]["endpoint"] == f"http://{release}-kafscale-minio:9000"
    assert kube.get(TOPICS, namespace, "greetings") is not None

    token = control_plane.token(namespace, f"{release}-kafscale-operator")
    operator = control_plane.client(token)
    assert [each["metadata"]["name"] for each in operator.list(CLUSTERS, namespace)] == ["try-out"]
    with pytest.raises(KubeRefusalError) as refused:
        operator.request("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles")
    assert refused.value.status == http.HTTPStatus.FORBIDDEN

    helm.install(release, CHART, namespace, {**values, "commonLabels": {"team": "data"}})
    helm.uninstall(release, namespace)
    for kind, name in ((TOPICS, "greetings"), (CLUSTERS, "try-out")):
        assert kube.delete(kind, namespace, name) is not None
