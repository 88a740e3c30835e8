"""Tests of metadata backups: snapshots are uploaded, and their status and failures are reported."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from services.kubernetes.control_plane import ControlPlane
from services.kubernetes.deployed import DeployedCluster
from services.kubernetes.installation import Installation
from services.kubernetes.operator_metrics import read_metrics
from services.s3_server import key_variables

pytestmark = pytest.mark.timeout(240)

KEYS = "snapshot-keys"
INTERVAL_S = 10
STALE_S = 20
RETAINED = 2


@pytest.fixture(scope="module")
def shop(control_plane: ControlPlane, kafscale: Installation) -> Iterator[DeployedCluster]:
    """A cluster whose metadata is backed up continuously, to a bucket that the operator creates."""
    with control_plane.namespace() as namespace:
        kafscale.create_secret(namespace, KEYS)
        snapshots = {
            "enabled": True,
            "bucket": f"backups-of-{namespace}",
            "createBucket": True,
            "credentialsSecretRef": KEYS,
            "intervalSeconds": INTERVAL_S,
            "staleAfterSeconds": STALE_S,
            "retain": RETAINED,
        }
        single_broker = {"replicas": 1, "terminationGracePeriodSeconds": 20}
        etcd = {"managed": {"replicas": 1}, "snapshots": snapshots}
        yield DeployedCluster.created(kafscale, namespace, brokers=single_broker, etcd=etcd)


def test_snapshots_are_taken_and_reported(shop: DeployedCluster) -> None:
    first = _newest(shop)
    shop.wait_until(lambda: _newest(shop) > first, "another snapshot")
    shop.wait_until(lambda: len(_stored_snapshots(shop)) == RETAINED, "the oldest to be deleted")
    reported = shop.wait()["snapshot"]
    assert reported["lastKey"].startswith(f"etcd-snapshots/{shop.namespace}.{shop.name}/")
    assert reported["ageSeconds"] < STALE_S
    newest = _bucket(shop) / reported["lastKey"]
    content = newest.read_bytes()
    assert len(content) == reported["sizeBytes"]
    output = json.loads(newest.with_suffix(".json").read_bytes())
    assert output["sha256"] == hashlib.sha256(content).hexdigest()
    for condition in ("EtcdSnapshot", "EtcdSnapshotAccess"):
        assert shop.condition(condition)["status"] == "True"
    metrics = _snapshot_metrics(shop)
    assert (metrics["success"], metrics["access"]) == (1, 1)
    assert "failures_total" in metrics
    assert metrics["age_seconds"] < STALE_S
    assert abs(metrics["last_success_timestamp_seconds"] - time.time()) < STALE_S
    assert metrics["size_bytes"] == len(content)
    assert metrics["duration_seconds"] > 0


def _hide_bucket(shop: DeployedCluster) -> Callable[[], object]:
    bucket = _bucket(shop)
    hidden = bucket.rename(bucket.with_name("hidden"))
    return lambda: hidden.rename(bucket)


def _forge_keys(shop: DeployedCluster) -> Callable[[], object]:
    forged = replace(shop.installation.s3.bucket, secret_key="another")  # noqa: S106 - it is wrong.
    shop.installation.create_secret(shop.namespace, KEYS, **key_variables(forged))
    return lambda: shop.installation.create_secret(shop.namespace, KEYS)


@pytest.mark.parametrize("fail", [pytest.param(_hide_bucket, marks=pytest.mark.long), _forge_keys])
def test_failed_snapshots_are_reported(
    shop: DeployedCluster, fail: Callable[[DeployedCluster], Callable[[], object]]
) -> None:
    shop.wait_until(lambda: _statuses(shop) == ["True", "True"], "healthy backups")
    failures = _snapshot_metrics(shop)["failures_total"]
    repair = fail(shop)
    try:
        shop.wait_until(lambda: _statuses(shop) == ["False", "False"], "the failure in the status")
        metrics = _snapshot_metrics(shop)
        assert (metrics["success"], metrics["access"]) == (0, 0)
        assert metrics["failures_total"] > failures
        reported = shop.condition("EtcdSnapshotAccess")["message"]
        assert reported.startswith("snapshots cannot be stored: ")
        # The cluster keeps working, and the last backup stays in the status.
        assert shop.wait()["snapshot"]["lastKey"]
    finally:
        repair()
    newest = _newest(shop)
    shop.wait_until(lambda: _newest(shop) > newest, "further snapshots")
    shop.wait_until(lambda: _statuses(shop) == ["True", "True"], "the status to recover")
    metrics = _snapshot_metrics(shop)
    assert (metrics["success"], metrics["access"]) == (1, 1)
    assert metrics["age_seconds"] < STALE_S


def _statuses(shop: DeployedCluster) -> list[str | None]:
    return [shop.condition(each).get("status") for each in ("EtcdSnapshotAccess", "EtcdSnapshot")]


def _newest(shop: DeployedCluster) -> str:
    """The key of the newest snapshot; later keys are greater."""
    return shop.wait().get("snapshot", {}).get("lastKey", "")


def _snapshot_metrics(shop: DeployedCluster) -> dict[str, float]:
    prefix = "etcd_snapshot_"
    metrics = read_metrics(shop.namespace, shop.name)
    return {
        name.removeprefix(prefix): value
        for name, value in metrics.items()
        if name.startswith(prefix)
    }


def _bucket(shop: DeployedCluster) -> Path:
    return shop.installation.s3.root / f"backups-of-{shop.namespace}"


def _stored_snapshots(shop: DeployedCluster) -> list[Path]:
    return list(_bucket(shop).glob("**/*.db"))
