"""Tests that one Helm command installs the operator, a cluster and a topic.

The operator has permissions in one namespace only, so the test shows that they suffice.
"""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kafscale.operator.kube.api import CLUSTERS, CONFIG_MAPS, PODS, TOPICS
from services.kubernetes import namespaces
from services.kubernetes.control_plane import RESTRICTED, ControlPlane
from services.kubernetes.helm import Helm
from services.kubernetes.installation import DEPLOYMENTS, FAST, HOME
from services.kubernetes.kube_client import KubeClient, Manifest
from services.s3_server import S3Server, key_variables
from services.waiting import wait_until

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "kafscale"
OPERATOR = {"app": "kafscale-operator"}
READY_S_MAX = 120


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[S3Server]:
    with S3Server(tmp_path / "s3", namespaces.GATEWAY) as server:
        yield server


@contextmanager
def no_other_operator(kube: KubeClient) -> Iterator[None]:
    """Stop the operator that other tests share, because it watches all namespaces."""
    name = "kafscale-operator"
    there = kube.get(DEPLOYMENTS, HOME, name)
    if there is None:
        yield
        return
    try:
        kube.patch(DEPLOYMENTS, HOME, name, {"spec": {"replicas": 0}})
        wait_until(
            lambda: not kube.list(PODS, HOME, OPERATOR),
            "the other operator to stop",
            seconds_max=60,
        )
        yield
    finally:
        kube.patch(DEPLOYMENTS, HOME, name, {"spec": {"replicas": there["spec"]["replicas"]}})
        kube.wait_for(DEPLOYMENTS, HOME, name, is_available)


def is_available(deployment: Manifest) -> bool:
    status = deployment.get("status", {})
    return status.get("readyReplicas", 0) == deployment["spec"]["replicas"]


def is_ready(resource: Manifest) -> bool:
    return resource.get("status", {}).get("phase") == "Ready"


def values(s3: S3Server) -> Manifest:
    """A small cluster on an existing bucket, and an operator with short intervals."""
    bucket = s3.bucket
    return {
        "operator": {
            "replicas": 1,
            "env": [{"name": name, "value": value} for name, value in FAST.items()],
        },
        "cluster": {
            "enabled": True,
            "name": "demo",
            "spec": {
                "brokers": {"replicas": 1},
                "s3": {
                    "bucket": bucket.name,
                    "endpoint": bucket.endpoint,
                    "credentialsSecretRef": "bucket-keys",
                },
                "etcd": {"managed": {"replicas": 1}},
                "autoscaling": {"enabled": False},
            },
        },
        "topics": [{"name": "greetings", "spec": {"partitions": 3}}],
        "console": {"enabled": True},
    }


def delivery_error(servers: str, topic: str, ca_pem: str) -> object:
    """Send a record over TLS; return the delivery error."""
    outcomes: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "message.timeout.ms": 30_000,
            "security.protocol": "SSL",
            "ssl.ca.pem": ca_pem,
        }
    )
    producer.produce(topic, "hello", on_delivery=lambda error, _: outcomes.append(error))
    producer.flush(30)
    [outcome] = outcomes
    return outcome


@pytest.mark.timeout(360)
@pytest.mark.usefixtures("kubelet")
def test_helm_install_creates_a_serving_cluster(
    control_plane: ControlPlane, kube: KubeClient, helm: Helm, s3: S3Server
) -> None:
    with control_plane.namespace(labels=RESTRICTED) as namespace, no_other_operator(kube):
        release = namespace  # ClusterRoles are named after it.
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bucket-keys"}}
        kube.apply({**secret, "stringData": key_variables(s3.bucket)}, namespace)
        helm.install(release, CHART, namespace, values(s3))
        operator = f"{release}-kafscale-operator"
        kube.wait_for(DEPLOYMENTS, namespace, operator, is_available)

        cluster = kube.wait_for(CLUSTERS, namespace, "demo", is_ready, seconds_max=READY_S_MAX)
        kube.wait_for(TOPICS, namespace, "greetings", is_ready, seconds_max=READY_S_MAX)
        # The certificate is verified, with the host names of the Service and of the pod.
        ca = kube.get(CONFIG_MAPS, namespace, "demo-listener-ca")
        assert ca is not None
        servers = cluster["status"]["bootstrapServers"]
        assert delivery_error(servers, "greetings", ca["data"]["ca.crt"]) is None

        console = f"{release}-kafscale-console"
        kube.wait_for(DEPLOYMENTS, namespace, console, is_available, seconds_max=READY_S_MAX)
        # No users are configured: the page is served, and all logins fail.
        url = f"http://{console}.{namespace}.svc.cluster.local:8080/api/v1/session"
        with urllib.request.urlopen(url, timeout=10) as response:
            assert json.load(response)["isConfigured"] is False

        for kind, name in ((TOPICS, "greetings"), (CLUSTERS, "demo")):
            kube.delete(kind, namespace, name)
            kube.wait_until_gone(kind, namespace, name, seconds_max=READY_S_MAX)
        helm.uninstall(release, namespace)
        wait_until(lambda: not kube.list(PODS, namespace), "all pods to be gone", seconds_max=90)
