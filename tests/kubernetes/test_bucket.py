"""The bucket of a cluster: nothing is begun without it, and what is wrong with it is said."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kafscale.operator.kube.kinds import NODES, SECRETS, STATEFUL_SETS
from services.kubernetes.deployed import Deployed
from services.kubernetes.installation import SECRET, Installation
from services.kubernetes.kube_client import KubeClient, KubeRefusalError
from services.kubernetes.kubelet.nodes import REGION, ZONES
from services.s3_server import key_variables

BUCKET = "kafscale-e2e-us-east-1"
ONE = {"replicas": 1, "terminationGracePeriodSeconds": 20}
LABEL = "topology.kubernetes.io/region"


@pytest.mark.timeout(240)
def test_a_bucket_is_missed_made_and_denied(kafscale: Installation, namespace: str) -> None:
    missing = {"bucket": BUCKET, "manageLifecycle": True}
    asked = kafscale.cluster(namespace, "shop")["spec"]["s3"]
    kafscale.create_cluster(namespace, "shop", brokers=ONE, s3=asked | missing)
    shop = Deployed(kafscale, namespace, "shop")
    _check_missing(shop)
    _check_region(shop)
    _check_made(shop)
    _check_forged_keys(shop)
    _check_lost_keys(shop)


def _check_missing(shop: Deployed) -> None:
    """Brokers wait until somebody does what is advised."""
    shop.wait_until(lambda: _status(shop, "EtcdReady") == "True", "an etcd")
    shop.wait_until(lambda: _status(shop, "BucketReady") == "False", "the bucket to be missed")
    told = shop.condition("BucketReady")["message"]
    assert BUCKET in told
    assert "create the bucket or set s3.createBucket to true" in told
    told = shop.condition("CustomerManagedKey")
    assert told["status"] == "False"
    assert "s3.kmsKeyArn" in told["message"]
    assert shop.wait("Pending").get("brokerCount") is None
    assert shop.kube.get(STATEFUL_SETS, shop.namespace, f"{shop.name}-broker") is None


def _check_region(shop: Deployed) -> None:
    """Nodes are not where the bucket is, until they are."""
    told = shop.condition("RegionMatches")
    assert told["status"] == "False"
    assert f"nodes are in {REGION}, but the bucket is in us-east-1" in told["message"]
    with _nodes_in("us-east-1", shop.kube):
        shop.wait_until(lambda: _status(shop, "RegionMatches") == "True", "nodes near the bucket")
    shop.wait_until(lambda: _status(shop, "RegionMatches") == "False", "nodes far away")


def _check_made(shop: Deployed) -> None:
    """On request it is made, under the name that it has to have."""
    with pytest.raises(KubeRefusalError, match="kafscale-ENVIRONMENT-REGION"):
        shop.change(s3={"createBucket": True})
    assert not _place(shop).exists()
    shop.change(s3={"createBucket": True, "environment": "e2e"})
    shop.wait()
    assert shop.condition("BucketReady")["reason"] == "Created"
    assert _place(shop).is_dir()


def _check_forged_keys(shop: Deployed) -> None:
    """Keys that open nothing are told of at once, and brokers are left at work."""
    before = shop.identities()
    forged = replace(shop.installation.s3.bucket, secret_key="another")  # noqa: S106 - it is wrong.
    shop.installation.create_secret(shop.namespace, **key_variables(forged))
    shop.wait_until(lambda: _status(shop, "BucketReady") == "False", "keys to be refused")
    assert "check the credentials" in shop.condition("BucketReady")["message"]
    assert shop.wait("Degraded")["readyBrokers"] == 1
    shop.installation.create_secret(shop.namespace)
    shop.wait()
    assert shop.identities() == before


def _check_lost_keys(shop: Deployed) -> None:
    """A Secret that is gone is missed, by its name; another one will do."""
    shop.kube.delete(SECRETS, shop.namespace, SECRET)
    shop.wait_until(lambda: _status(shop, "BucketReady") == "False", "keys to be missed")
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


def _status(shop: Deployed, condition: str) -> str | None:
    return shop.condition(condition).get("status")


def _place(shop: Deployed) -> Path:
    return shop.installation.s3.root / BUCKET
