"""Tests of a cluster's bucket: nothing starts without it, and problems are reported."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kafscale.operator.kube.api import NODES, SECRETS, STATEFUL_SETS
from services.kubernetes.deployed import DeployedCluster
from services.kubernetes.installation import SECRET, Installation
from services.kubernetes.kube_client import ApiError, KubeClient
from services.kubernetes.kubelet.nodes import REGION, ZONES
from services.s3_server import key_variables

BUCKET = "kafscale-e2e-us-east-1"
SINGLE_BROKER = {"replicas": 1, "terminationGracePeriodSeconds": 20}
LABEL = "topology.kubernetes.io/region"


@pytest.mark.timeout(240)
def test_bucket_is_missing_created_and_denied(kafscale: Installation, namespace: str) -> None:
    missing = {"bucket": BUCKET, "manageLifecycle": True}
    spec_s3 = kafscale.cluster(namespace, "shop")["spec"]["s3"]
    kafscale.create_cluster(namespace, "shop", brokers=SINGLE_BROKER, s3=spec_s3 | missing)
    shop = DeployedCluster(kafscale, namespace, "shop")
    _check_missing(shop)
    _check_region(shop)
    _check_created(shop)
    _check_forged_keys(shop)
    _check_lost_keys(shop)


def _check_missing(shop: DeployedCluster) -> None:
    """Brokers wait until the advice is followed."""
    shop.wait_until(lambda: _status(shop, "EtcdReady") == "True", "an etcd")
    shop.wait_until(
        lambda: _status(shop, "BucketReady") == "False", "the missing bucket in the status"
    )
    reported = shop.condition("BucketReady")["message"]
    assert BUCKET in reported
    assert "create the bucket or set s3.createBucket to true" in reported
    reported = shop.condition("CustomerManagedKey")
    assert reported["status"] == "False"
    assert "s3.kmsKeyArn" in reported["message"]
    assert shop.wait("Pending").get("brokerCount") is None
    assert shop.kube.get(STATEFUL_SETS, shop.namespace, f"{shop.name}-broker") is None


def _check_region(shop: DeployedCluster) -> None:
    """Nodes are not in the bucket's region, until they are."""
    reported = shop.condition("RegionMatches")
    assert reported["status"] == "False"
    assert f"nodes are in {REGION}, but the bucket is in us-east-1" in reported["message"]
    with _nodes_in("us-east-1", shop.kube):
        shop.wait_until(
            lambda: _status(shop, "RegionMatches") == "True", "nodes in the region of the bucket"
        )
    shop.wait_until(lambda: _status(shop, "RegionMatches") == "False", "nodes in another region")


def _check_created(shop: DeployedCluster) -> None:
    """It is created on request, if the name is right."""
    with pytest.raises(ApiError, match="kafscale-ENVIRONMENT-REGION"):
        shop.change(s3={"createBucket": True})
    assert not _bucket_directory(shop).exists()
    shop.change(s3={"createBucket": True, "environment": "e2e"})
    shop.wait()
    assert shop.condition("BucketReady")["reason"] == "Created"
    assert _bucket_directory(shop).is_dir()


def _check_forged_keys(shop: DeployedCluster) -> None:
    """Invalid keys are reported at once, and brokers keep running."""
    before = shop.pod_uids()
    forged = replace(shop.installation.s3.bucket, secret_key="another")  # noqa: S106 - it is wrong.
    shop.installation.create_secret(shop.namespace, **key_variables(forged))
    shop.wait_until(lambda: _status(shop, "BucketReady") == "False", "invalid keys in the status")
    assert "check the credentials" in shop.condition("BucketReady")["message"]
    assert shop.wait("Degraded")["readyBrokers"] == 1
    shop.installation.create_secret(shop.namespace)
    shop.wait()
    assert shop.pod_uids() == before


def _check_lost_keys(shop: DeployedCluster) -> None:
    """A missing Secret is reported by name; a new one is used."""
    shop.kube.delete(SECRETS, shop.namespace, SECRET)
    shop.wait_until(lambda: _status(shop, "BucketReady") == "False", "missing keys in the status")
    assert f"the Secret '{SECRET}' does not exist" in shop.condition("BucketReady")["message"]
    shop.installation.create_secret(shop.namespace)
    shop.wait()


@contextmanager
def _nodes_in(region: str, kube: KubeClient) -> Iterator[None]:
    try:
        for node in ZONES:
            kube.patch(NODES, "", node, {"metadata": {"labels": {LABEL: region}}})
        yield
    finally:
        for node in ZONES:
            kube.patch(NODES, "", node, {"metadata": {"labels": {LABEL: REGION}}})


def _status(shop: DeployedCluster, condition: str) -> str | None:
    return shop.condition(condition).get("status")


def _bucket_directory(shop: DeployedCluster) -> Path:
    return shop.installation.s3.root / BUCKET
