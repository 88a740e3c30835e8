"""Tests of the Kubernetes test cluster: it must be real where it matters."""

import http.client
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kafscale.operator.kube import api
from kafscale.operator.kube.api import CONFIG_MAPS, PODS, ROLE_BINDINGS, ROLES, Kind
from services.kubernetes import binaries, namespaces
from services.kubernetes.control_plane import RESTRICTED, ControlPlane
from services.kubernetes.helm import Helm, HelmError
from services.kubernetes.kube_client import NAMESPACES, ApiError, KubeClient, Manifest
from services.waiting import wait_until

OURS = ("kafscale.io", "monitoring.coreos.com")
BUILT_IN = [kind for kind in api.ALL if not kind.api_version.startswith(OURS)]


def config_map(**data: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def test_version_is_the_pinned_one(kube: KubeClient) -> None:
    assert kube.request("GET", "/version")["gitVersion"] == f"v{binaries.kubernetes_version()}"


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.plural)
def test_kinds_match_discovery(kube: KubeClient, kind: Kind) -> None:
    assert kube.kind(kind.api_version, kind.kind) == kind


def test_no_other_network_is_reachable() -> None:
    if not namespaces.is_inside():
        pytest.skip("needs its own Linux namespaces: make test-k8s")
    names = {name for _, name in socket.if_nameindex()}
    assert {name for name in names if not name.startswith("veth")} >= {"lo", namespaces.BRIDGE}
    with socket.socket() as outside, pytest.raises(OSError, match="unreachable"):
        outside.connect(("192.0.2.1", 9))


def test_no_process_survives_the_namespaces() -> None:
    if namespaces.missing():
        pytest.skip("Linux namespaces are not available")
    in_namespaces = [sys.executable, "-m", "services.kubernetes.namespaces"]
    # The output has ended, so no process is left that could write.
    completed = subprocess.run(  # noqa: S603 - our own command.
        [*in_namespaces, "sh", "-c", "setsid sleep 1000 & echo $!"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        check=True,
        timeout=20,
    )
    assert int(completed.stdout)


def test_apply_changes_only_its_fields(kube: KubeClient, namespace: str) -> None:
    kube.apply(config_map(mine="1"), namespace)
    kube.patch(CONFIG_MAPS, namespace, "a", {"data": {"theirs": "1"}})
    assert kube.apply(config_map(mine="2"), namespace)["data"] == {"mine": "2", "theirs": "1"}


def test_missing_object_is_none(kube: KubeClient, namespace: str) -> None:
    assert kube.get(CONFIG_MAPS, namespace, "b") is None
    assert kube.patch(CONFIG_MAPS, namespace, "b", {}) is None
    assert kube.delete(CONFIG_MAPS, namespace, "b") is None


def test_unknown_fields_are_rejected(kube: KubeClient, namespace: str) -> None:
    with pytest.raises(ApiError, match="not declared in schema"):
        kube.apply(config_map() | {"dat": {}}, namespace)


def test_watch_yields_events(kube: KubeClient, namespace: str) -> None:
    created = kube.create(config_map(version="1"), namespace)
    kube.apply(config_map(version="2"), namespace)
    kube.delete(CONFIG_MAPS, namespace, "a")
    watch = kube.watch(CONFIG_MAPS, namespace, since=created["metadata"]["resourceVersion"])
    assert [next(watch)[0] for _ in range(2)] == ["MODIFIED", "DELETED"]
    watch.close()


def test_namespaces_are_deleted_with_their_content(
    control_plane: ControlPlane, kube: KubeClient
) -> None:
    with control_plane.namespace() as name:
        kube.create(config_map(), name)
    kube.wait_until_gone(NAMESPACES, "", name)
    assert kube.list(CONFIG_MAPS, name) == []


def test_service_accounts_have_the_permissions_of_their_role(
    control_plane: ControlPlane, kube: KubeClient, namespace: str
) -> None:
    account = control_plane.client(control_plane.token(namespace, "default"))
    with pytest.raises(ApiError, match="Forbidden"):
        account.list(PODS, namespace)

    role, subject = {"name": "reader"}, {"kind": "ServiceAccount", "name": "default"}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    named = {"apiVersion": ROLES.api_version, "metadata": role}
    kube.apply(named | {"kind": "Role", "rules": [rule]}, namespace)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role"} | role
    binding = {"kind": ROLE_BINDINGS.kind, "roleRef": reference, "subjects": [subject]}
    kube.apply(named | binding, namespace)

    def is_allowed() -> bool:
        try:
            return account.list(PODS, namespace) == []
        except ApiError:
            return False

    wait_until(is_allowed, "the role")
    with pytest.raises(ApiError, match="Forbidden"):
        account.list(CONFIG_MAPS, namespace)


def test_invalid_token_is_rejected(control_plane: ControlPlane) -> None:
    with pytest.raises(ApiError) as error:
        control_plane.client("an invalid token").list(PODS)
    assert error.value.status == http.client.UNAUTHORIZED


def test_pod_security_is_enforced(control_plane: ControlPlane, kube: KubeClient) -> None:
    spec = {"containers": [{"name": "a", "image": "a", "securityContext": {"privileged": True}}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    with (
        control_plane.namespace(labels=RESTRICTED) as namespace,
        pytest.raises(ApiError, match="violates PodSecurity"),
    ):
        kube.create(pod, namespace)


def test_helm_is_of_the_pinned_version(helm: Helm) -> None:
    release = binaries.helm_version().rpartition(".")[0]
    assert helm("version", "--template", "{{ .Version }}") == f"v{release}"


def test_helm_renders_installs_and_uninstalls(
    helm: Helm, kube: KubeClient, namespace: str, tmp_path: Path
) -> None:
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    about = {"apiVersion": "v2", "name": "a", "version": "1.0.0", "kubeVersion": ">=1.33.0-0"}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about))
    template = config_map(greeting="{{ required `set word` .Values.word }}")
    (chart / "templates" / "map.yaml").write_text(yaml.safe_dump(template))

    with pytest.raises(HelmError, match="set word"):
        helm.render("a", chart, namespace)
    [rendered] = helm.render("a", chart, namespace, {"word": "hello"})
    assert rendered == config_map(greeting="hello")
    for word in ("hello", "goodbye"):
        helm.install("a", chart, namespace, {"word": word})
        installed = kube.get(CONFIG_MAPS, namespace, "a")
        assert installed is not None
        assert installed["data"] == {"greeting": word}
    helm.uninstall("a", namespace)
    assert kube.get(CONFIG_MAPS, namespace, "a") is None
