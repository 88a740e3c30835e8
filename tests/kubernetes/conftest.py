"""Fixtures of all tests on Kubernetes: they share one cluster.

They are marked `kubernetes`, and `make test-k8s` runs them in one process, isolated from the
machine in Linux namespaces.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from generators.crds import definitions as crds
from services.kubernetes import binaries, namespaces
from services.kubernetes.control_plane import RESTRICTED, ControlPlane
from services.kubernetes.deployed import DeployedCluster
from services.kubernetes.helm import Helm
from services.kubernetes.installation import Installation
from services.kubernetes.kube_client import DEFINITIONS, KubeClient, Manifest, has_condition
from services.kubernetes.kubelet.kubelet import Kubelet
from services.kubernetes.metrics_api import MetricsApi
from services.s3_server import S3Server

FOLDER = "tests/kubernetes/"
TIMEOUT_S = 120


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(FOLDER):
            item.add_marker(pytest.mark.kubernetes)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    if not namespaces.is_inside():
        pytest.skip("needs its own Linux namespaces: make test-k8s")
    if reason := binaries.missing():
        pytest.skip(reason)
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane


@pytest.fixture
def kube(control_plane: ControlPlane) -> KubeClient:
    """A client with all permissions."""
    return control_plane.kube


@pytest.fixture(scope="session")
def definitions(control_plane: ControlPlane) -> list[Manifest]:
    """The CRDs of Kafscale, established."""
    kube = control_plane.kube
    names = [kube.apply(each)["metadata"]["name"] for each in crds.definitions()]
    return [
        kube.wait_for(DEFINITIONS, "", name, lambda each: has_condition(each, "Established"))
        for name in names
    ]


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace for one test."""
    with control_plane.namespace() as name:
        yield name


@pytest.fixture(scope="session")
def metrics(control_plane: ControlPlane) -> Iterator[MetricsApi]:
    with MetricsApi(control_plane) as api:
        yield api


@pytest.fixture
def helm(control_plane: ControlPlane, tmp_path: Path) -> Helm:
    return Helm(control_plane.kubeconfig, tmp_path)


@pytest.fixture(scope="session")
def kubelet(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubelet]:
    """Nodes for pods to run on."""
    with Kubelet(control_plane.kubeconfig, tmp_path_factory.mktemp("kubelet")) as kubelet:
        yield kubelet


@pytest.fixture(scope="session")
def kafscale(
    control_plane: ControlPlane, kubelet: Kubelet, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """The running operator, and a bucket that pods can reach."""
    with (
        S3Server(tmp_path_factory.mktemp("s3"), namespaces.GATEWAY) as s3,
        Installation(control_plane, kubelet, s3) as installation,
    ):
        yield installation


@pytest.fixture(scope="session")
def shop(control_plane: ControlPlane, kafscale: Installation) -> Iterator[DeployedCluster]:
    """A cluster of two brokers that tests may change, in a namespace for restricted pods."""
    with control_plane.namespace(labels=RESTRICTED) as namespace:
        yield DeployedCluster.created(kafscale, namespace)
