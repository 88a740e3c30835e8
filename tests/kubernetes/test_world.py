"""The world of Kubernetes that tests live in: it has to be real where it matters."""

import http.client
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kafscale.operator.kube import kinds
from kafscale.operator.kube.kinds import CONFIG_MAPS, PODS, ROLE_BINDINGS, ROLES, Kind
from services.kubernetes import binaries, namespaces
from services.kubernetes.control_plane import RESTRICTED, ControlPlane
from services.kubernetes.helm import Helm, HelmError
from services.kubernetes.kube_client import NAMESPACES, KubeClient, KubeRefusalError, Manifest
from services.waiting import wait_until

OURS = ("kafscale.io", "monitoring.coreos.com")
BUILT_IN = [kind for kind in kinds.ALL if not kind.api_version.startswith(OURS)]


def config_map(**data: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def test_it_is_the_kubernetes_that_was_asked_for(kube: KubeClient) -> None:
    assert kube.request("GET", "/version")["gitVersion"] == f"v{binaries.kubernetes_version()}"


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.plural)
def test_kinds_are_where_the_operator_looks_for_them(kube: KubeClient, kind: Kind) -> None:
    assert kube.kind(kind.api_version, kind.kind) == kind


def test_there_is_no_other_network() -> None:
    if not namespaces.is_inside():
        pytest.skip("this is about the room: make test-k8s")
    names = {name for _, name in socket.if_nameindex()}
    assert {name for name in names if not name.startswith("veth")} >= {"lo", namespaces.BRIDGE}
    with socket.socket() as outside, pytest.raises(OSError, match="unreachable"):
        outside.connect(("192.0.2.1", 9))


def test_nothing_survives_the_room() -> None:
    if namespaces.missing():
        pytest.skip("there are no rooms here")
    room = [sys.executable, "-m", "services.kubernetes.namespaces"]
    # That output has ended, which is waited for, means that nobody is left who could write.
    done = subprocess.run(  # noqa: S603 - our own command.
        [*room, "sh", "-c", "setsid sleep 1000 & echo $!"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        check=True,
        timeout=20,
    )
    assert int(done.stdout)


def test_applied_fields_change_and_others_stay(kube: KubeClient, namespace: str) -> None:
    kube.apply(config_map(mine="1"), namespace)
    kube.patch(CONFIG_MAPS, namespace, "a", {"data": {"theirs": "1"}})
    assert kube.apply(config_map(mine="2"), namespace)["data"] == {"mine": "2", "theirs": "1"}


def test_what_is_not_there_is_nothing(kube: KubeClient, namespace: str) -> None:
    assert kube.get(CONFIG_MAPS, namespace, "b") is None
    assert kube.patch(CONFIG_MAPS, namespace, "b", {}) is None
    assert kube.delete(CONFIG_MAPS, namespace, "b") is None


def test_unknown_fields_are_refused(kube: KubeClient, namespace: str) -> None:
    with pytest.raises(KubeRefusalError, match="not declared in schema"):
        kube.apply(config_map() | {"dat": {}}, namespace)


def test_watches_tell_what_happens(kube: KubeClient, namespace: str) -> None:
    created = kube.create(config_map(version="1"), namespace)
    kube.apply(config_map(version="2"), namespace)
    kube.delete(CONFIG_MAPS, namespace, "a")
    watch = kube.watch(CONFIG_MAPS, namespace, since=created["metadata"]["resourceVersion"])
    assert [next(watch)[0] for _ in range(2)] == ["MODIFIED", "DELETED"]
    watch.close()


def test_namespaces_go_with_what_is_in_them(control_plane: ControlPlane, kube: KubeClient) -> None:
    with control_plane.namespace() as name:
        kube.create(config_map(), name)
    kube.wait_until_gone(NAMESPACES, "", name)
    assert kube.list(CONFIG_MAPS, name) == []


def test_accounts_may_do_what_a_role_permits(
    control_plane: ControlPlane, kube: KubeClient, namespace: str
) -> None:
    somebody = control_plane.client(control_plane.token(namespace, "default"))
    with pytest.raises(KubeRefusalError, match="Forbidden"):
        somebody.list(PODS, namespace)

    role, subject = {"name": "reader"}, {"kind": "ServiceAccount", "name": "default"}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    named = {"apiVersion": ROLES.api_version, "metadata": role}
    kube.apply(named | {"kind": "Role", "rules": [rule]}, namespace)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role"} | role
    binding = {"kind": ROLE_BINDINGS.kind, "roleRef": reference, "subjects": [subject]}
    kube.apply(named | binding, namespace)

    def is_let_in() -> bool:
        try:
            return somebody.list(PODS, namespace) == []
        except KubeRefusalError:
            return False

    wait_until(is_let_in, "the role")
    with pytest.raises(KubeRefusalError, match="Forbidden"):
        somebody.list(CONFIG_MAPS, namespace)


def test_strangers_are_not_let_in(control_plane: ControlPlane) -> None:
    with pytest.raises(KubeRefusalError) as refused:
        control_plane.client("a token of nobody").list(PODS)
    assert refused.value.status == http.client.UNAUTHORIZED


def test_pod_security_is_enforced(control_plane: ControlPlane, kube: KubeClient) -> None:
    spec = {"containers": [{"name": "a", "image": "a", "securityContext": {"privileged": True}}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    with (
        control_plane.namespace(labels=RESTRICTED) as namespace,
        pytest.raises(KubeRefusalError, match="violates PodSecurity"),
    ):
        kube.create(pod, namespace)


def test_helm_is_of_the_pinned_version(helm: Helm) -> None:
    assert helm("version", "--template", "{{ .Version }}") == "v3.19"


def test_helm_renders_installs_and_uninstalls(
    helm: Helm, kube: KubeClient, namespace: str, tmp_path: Path
) -> None:
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    about = {"apiVersion": "v2", "name": "a", "version": "1.0.0", "kubeVersion": ">=1.33.0-0"}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about))
    template = config_map(said="{{ required `say` .Values.word }}")
    (chart / "templates" / "map.yaml").write_text(yaml.safe_dump(template))

    with pytest.raises(HelmError, match="say"):
        helm.render("a", chart, namespace)
    [render_definitions] = helm.render("a", chart, namespace, {"word": "hello"})
    assert render_definitions == config_map(said="hello")
    for word in ("hello", "goodbye"):
        helm.install("a", chart, namespace, {"word": word})
        installed = kube.get(CONFIG_MAPS, namespace, "a")
        assert installed is not None
        assert installed["data"] == {"said": word}
    helm.uninstall("a", namespace)
    assert kube.get(CONFIG_MAPS, namespace, "a") is None
