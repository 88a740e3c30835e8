"""Kafscale on the test cluster: the operator installed from its manifests, and clusters.

with Installation(plane, kubelet, s3) as kafscale:
    kafscale.create_cluster(namespace, "demo", brokers={"replicas": 2})
    kafscale.wait_phase(namespace, "demo", "Ready")
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import yaml

from kafscale.operator.kube.api import CLUSTERS, LEASES, PODS, SECRETS, TOPICS, Kind
from services.kubernetes.control_plane import ControlPlane
from services.kubernetes.kube_client import Manifest
from services.kubernetes.kubelet.kubelet import Kubelet
from services.s3_server import S3Server, key_variables
from services.waiting import wait_until

CONFIG = Path(__file__).parents[3] / "config"
HOME = "kafscale"
"""The namespace of the operator."""
DEPLOYMENTS = Kind("apps/v1", "Deployment", "deployments")
SECRET = "s3-credentials"  # noqa: S105 - a name.
FAST = {"KAFSCALE_OPERATOR_RESYNC_SEC": "2", "KAFSCALE_OPERATOR_LEASE_DURATION_SEC": "8"}
ALL_NAMESPACES = {"KAFSCALE_OPERATOR_NAMESPACES": "*"}
LOG_SHOWN_MAX = 3000


class Installation:
    """The operator of all namespaces, installed from `config/`, and a bucket for the clusters."""

    def __init__(self, plane: ControlPlane, kubelet: Kubelet, s3: S3Server) -> None:
        self.kube = plane.kube
        self.kubelet = kubelet
        self.s3 = s3

    def __enter__(self) -> Self:
        for manifest in self._manifests():
            self.kube.apply(manifest)
        self.wait_operator()
        return self

    def __exit__(self, *_: object) -> None:
        self.kube.delete(DEPLOYMENTS, HOME, "kafscale-operator")
        wait_until(lambda: not self.operators(), "operators to be gone", seconds_max=60)

    def operators(self) -> list[str]:
        """The names of the operators' pods."""
        pods = self.kube.list(PODS, HOME, {"app": "kafscale-operator"})
        return [pod["metadata"]["name"] for pod in pods]

    def leader(self) -> str:
        """The pod of the leading operator; empty if there is none."""
        return self.holder().rpartition("_")[0]

    def holder(self) -> str:
        """The identity in the lease, which is unique per process; empty if there is no leader."""
        lease = self.kube.get(LEASES, HOME, "kafscale-operator") or {"spec": {}}
        return lease["spec"].get("holderIdentity") or ""

    def wait_operator(self) -> None:
        wait_until(lambda: len(self.operators()) == 2, "two operators", seconds_max=30)
        for name in self.operators():
            self.kubelet.wait_ready(HOME, name)

    @contextmanager
    def environment(self, **variables: str) -> Iterator[None]:
        """Run operators with additional variables inside the block."""
        self._redeploy(variables)
        try:
            yield
        finally:
            self._redeploy({})

    def create_secret(self, namespace: str, name: str = SECRET, **entries: str) -> None:
        """The keys of the bucket, or these entries, as a Secret."""
        entries = entries or key_variables(self.s3.bucket)
        data = {key: base64.b64encode(text.encode()).decode() for key, text in entries.items()}
        self.kube.apply(_manifest(SECRETS, namespace, name, {"data": data}))

    def cluster(self, namespace: str, name: str, **spec: Any) -> Manifest:
        """A small cluster on the bucket without autoscaling, unless `spec` says otherwise."""
        bucket = self.s3.bucket
        desired: dict[str, Any] = {
            "brokers": {"replicas": 2, "terminationGracePeriodSeconds": 20},
            "s3": {
                "bucket": bucket.name,
                "endpoint": bucket.endpoint,
                "credentialsSecretRef": SECRET,
                "manageLifecycle": False,
            },
            "autoscaling": {"enabled": False},
            "etcd": {"managed": {"replicas": 1}, "snapshots": {"enabled": False}},
            "config": {"settings": {"broker": {"leaseTtlMs": 5000}}},
        }
        for part, fields in spec.items():
            desired[part] = {**desired.get(part, {}), **fields}
        return _manifest(CLUSTERS, namespace, name, {"spec": desired})

    def create_cluster(self, namespace: str, name: str, **spec: Any) -> Manifest:
        """Create a cluster, with the Secret of its bucket."""
        self.create_secret(namespace)
        return self.kube.apply(self.cluster(namespace, name, **spec))

    def create_topic(self, namespace: str, name: str, cluster: str, **spec: Any) -> Manifest:
        desired = {"clusterRef": cluster, "partitions": 3, **spec}
        return self.kube.apply(_manifest(TOPICS, namespace, name, {"spec": desired}))

    def status(self, namespace: str, name: str, kind: Kind = CLUSTERS) -> dict[str, Any]:
        resource = self.kube.get(kind, namespace, name)
        return (resource or {}).get("status") or {}

    def condition(
        self, namespace: str, name: str, type_: str, kind: Kind = CLUSTERS
    ) -> dict[str, Any]:
        """A condition of a resource; empty if it has none."""
        conditions = self.status(namespace, name, kind).get("conditions") or []
        return next((each for each in conditions if each["type"] == type_), {})

    def wait_phase(
        self,
        namespace: str,
        name: str,
        phase: str,
        *,
        kind: Kind = CLUSTERS,
        seconds_max: float = 90,
    ) -> dict[str, Any]:
        """The status, once it has this phase and is about the newest generation."""

        status: dict[str, Any] = {}

        def is_reached() -> bool:
            nonlocal status
            resource = self.kube.get(kind, namespace, name)
            status = (resource or {}).get("status") or {}
            generation = resource["metadata"]["generation"] if resource else 0
            return (status.get("phase"), status.get("observedGeneration")) == (phase, generation)

        self.wait(
            is_reached,
            f"{kind.kind} {name} to be {phase}",
            namespace,
            name=name,
            kind=kind,
            seconds_max=seconds_max,
        )
        return status

    def wait(
        self,
        condition: Callable[[], bool],
        what: str,
        namespace: str,
        *,
        seconds_max: float = 60,
        name: str = "",
        kind: Kind = CLUSTERS,
    ) -> None:
        """Wait; a timeout is reported with status and logs."""
        wait_until(
            condition,
            what,
            seconds_max=seconds_max,
            seen=lambda: self._report(namespace, name, kind),
        )

    def bootstrap(self, namespace: str, name: str) -> str:
        return str(self.status(namespace, name)["bootstrapServers"])

    def _report(self, namespace: str, name: str, kind: Kind) -> str:
        """Status and logs, for a timeout."""
        status = self.status(namespace, name, kind) if name else {}
        operators = [(HOME, each) for each in self.operators()]
        pods = [(namespace, pod["metadata"]["name"]) for pod in self.kube.list(PODS, namespace)]
        logs = [
            f"--- {pod}\n{self.kubelet.logs(pod_namespace, pod)[-LOG_SHOWN_MAX:]}"
            for pod_namespace, pod in [*operators, *pods]
        ]
        return "\n".join([yaml.safe_dump(status), *logs])

    def _redeploy(self, variables: Mapping[str, str]) -> None:
        """Replace the operators by others with additional variables."""
        [deployment] = [each for each in self._manifests() if each["kind"] == "Deployment"]
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        container["env"] += [{"name": name, "value": value} for name, value in variables.items()]
        applied = self.kube.apply(deployment)

        def is_rolled_out(resource: Manifest) -> bool:
            status = resource["status"]
            counts = [status.get(each) for each in ("updatedReplicas", "readyReplicas", "replicas")]
            is_observed = status.get("observedGeneration", 0) >= applied["metadata"]["generation"]
            return is_observed and counts == [2, 2, 2]

        self.kube.wait_for(DEPLOYMENTS, HOME, "kafscale-operator", is_rolled_out, seconds_max=120)
        wait_until(lambda: len(self.operators()) == 2, "former operators to go", seconds_max=60)

    def _manifests(self) -> list[Manifest]:
        files = [
            *sorted((CONFIG / "crd" / "bases").glob("*.yaml")),
            CONFIG / "operator" / "namespace.yaml",
            *sorted((CONFIG / "rbac").glob("*.yaml")),
            *sorted((CONFIG / "operator").glob("*.yaml")),
            CONFIG / "all-namespaces" / "role_binding.yaml",
        ]
        manifests = [
            manifest
            for file in files
            if file.name != "kustomization.yaml"
            for manifest in yaml.safe_load_all(file.read_text())
        ]
        return [self._with_namespace(manifest) for manifest in manifests]

    def _with_namespace(self, manifest: Manifest) -> Manifest:
        """Set namespace and environment, as Kustomize does."""
        cluster_wide = {"Namespace", "ClusterRole", "ClusterRoleBinding"}
        if manifest["kind"] not in {*cluster_wide, "CustomResourceDefinition"}:
            manifest["metadata"]["namespace"] = HOME
        for subject in manifest.get("subjects", ()):
            subject["namespace"] = HOME
        if manifest["kind"] == "Deployment":
            [container] = manifest["spec"]["template"]["spec"]["containers"]
            variables = {**FAST, **ALL_NAMESPACES}
            container["env"] += [
                {"name": name, "value": value} for name, value in variables.items()
            ]
        return manifest


def _manifest(kind: Kind, namespace: str, name: str, fields: Mapping[str, Any]) -> Manifest:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": namespace},
        **fields,
    }
