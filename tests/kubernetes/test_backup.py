"""Backups of the metadata: taken, told of, missed, and at last needed."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from services.kubernetes.control_plane import ControlPlane
from services.kubernetes.deployed import Deployed
from services.kubernetes.installation import Installation
from services.kubernetes.operator_figures import figures
from services.s3_server import key_variables

pytestmark = pytest.mark.timeout(240)

KEYS = "snapshot-keys"
INTERVAL_S = 10
STALE_S = 20
RETAINED = 2


@pytest.fixture(scope="module")
def shop(control_plane: ControlPlane, kafscale: Installation) -> Iterator[Deployed]:
    """A cluster whose metadata are backed up all the time, to a bucket that nobody has made."""
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
        one = {"replicas": 1, "terminationGracePeriodSeconds": 20}
        etcd = {"managed": {"replicas": 1}, "snapshots": snapshots}
        yield Deployed.created(kafscale, namespace, brokers=one, etcd=etcd)


def test_snapshots_are_taken_and_told_of(shop: Deployed) -> None:
    first = _newest(shop)
    shop.wait_until(lambda: _newest(shop) > first, "another snapshot")
    shop.wait_until(lambda: len(_stored(shop)) == RETAINED, "the oldest to go")
    told = shop.wait()["snapshot"]
    assert told["lastKey"].startswith(f"etcd-snapshots/{shop.namespace}.{shop.name}/")
    assert told["ageSeconds"] < STALE_S
    newest = _bucket(shop) / told["lastKey"]
    content = newest.read_bytes()
    assert len(content) == told["sizeBytes"]
    said = json.loads(newest.with_suffix(".json").read_bytes())
    assert said["sha256"] == hashlib.sha256(content).hexdigest()
    for condition in ("EtcdSnapshot", "EtcdSnapshotAccess"):
        assert shop.condition(condition)["status"] == "True"
    found = _figures(shop)
    assert (found["success"], found["access"]) == (1, 1)
    assert "failures_total" in found
    assert found["age_seconds"] < STALE_S
    assert abs(found["last_success_timestamp_seconds"] - time.time()) < STALE_S
    assert found["size_bytes"] == len(content)
    assert found["duration_seconds"] > 0


def _hide_bucket(shop: Deployed) -> Callable[[], object]:
    bucket = _bucket(shop)
    hidden = bucket.rename(bucket.with_name("hidden"))
    return lambda: hidden.rename(bucket)


def _forge_keys(shop: Deployed) -> Callable[[], object]:
    forged = replace(shop.installation.s3.bucket, secret_key="another")  # noqa: S106 - it is wrong.
    shop.installation.create_secret(shop.namespace, KEYS, **key_variables(forged))
    return lambda: shop.installation.create_secret(shop.namespace, KEYS)


@pytest.mark.parametrize("fail", [_hide_bucket, _forge_keys])
def test_snapshots_that_fail_are_seen(
    shop: Deployed, fail: Callable[[Deployed], Callable[[], object]]
) -> None:
    shop.wait_until(lambda: _verdicts(shop) == ["True", "True"], "backups that are well")
    failures = _figures(shop)["failures_total"]
    repair = fail(shop)
    try:
        shop.wait_until(lambda: _verdicts(shop) == ["False", "False"], "the failure to be seen")
        found = _figures(shop)
        assert (found["success"], found["access"]) == (0, 0)
        assert found["failures_total"] > failures
        told = shop.condition("EtcdSnapshotAccess")["message"]
        assert told.startswith("snapshots cannot be stored: ")
        # What is at work goes on, and what is known of the last backup stays known.
        assert shop.wait()["snapshot"]["lastKey"]
    finally:
        repair()
    newest = _newest(shop)
    shop.wait_until(lambda: _newest(shop) > newest, "snapshots to go on")
    shop.wait_until(lambda: _verdicts(shop) == ["True", "True"], "the repair to be seen")
    found = _figures(shop)
    assert (found["success"], found["access"]) == (1, 1)
    assert found["age_seconds"] < STALE_S


def _verdicts(shop: Deployed) -> list[str | None]:
    return [shop.condition(each).get("status") for each in ("EtcdSnapshotAccess", "EtcdSnapshot")]


def _newest(shop: Deployed) -> str:
    """The key of the newest snapshot; that of a later one is greater."""
    return shop.wait().get("snapshot", {}).get("lastKey", "")


def _figures(shop: Deployed) -> dict[str, float]:
    beginning = "etcd_snapshot_"
    found = figures(shop.namespace, shop.name)
    return {
        name.removeprefix(beginning): value
        for name, value in found.items()
        if name.startswith(beginning)
    }


def _bucket(shop: Deployed) -> Path:
    return shop.installation.s3.root / f"backups-of-{shop.namespace}"


def _stored(shop: Deployed) -> list[Path]:
    return list(_bucket(shop).glob("**/*.db"))
