"""Tests of rollouts: one broker at a time, drained first, unnoticed by clients."""

import time

import pytest

from services.kubernetes.deployed import DeployedCluster, is_ready
from services.kubernetes.readiness import Readiness
from services.kubernetes.traffic import Traffic
from services.s3_server import key_variables

pytestmark = pytest.mark.timeout(240)

BROKERS = 2
PARTITIONS = 6
QUIET_S = 4
"""Two resyncs of the operator: what it does not do within these, it never does."""


def test_changed_config_restarts_brokers_under_load(shop: DeployedCluster) -> None:
    shop.create_topic("orders", PARTITIONS)
    shop.wait()
    before = shop.pod_uids()
    drained_before = len(shop.events("Drained"))
    failed_before = shop.events("DrainFailed")
    shop.wait_until(lambda: len(shop.leader_counts("orders")) == BROKERS, "leaders on all brokers")
    with Traffic(shop.servers, "orders", PARTITIONS) as traffic, Readiness(shop) as readiness:
        shop.change(config={"flushIntervalMs": 100})
        shop.wait()
    traffic.verify()
    after = shop.pod_uids()
    assert after.keys() == before.keys()
    assert not after.items() & before.items()
    assert readiness.minimum == BROKERS - 1
    # The last one first, each fully drained before it stopped.
    drained = shop.events("Drained")[drained_before:]
    assert [each.split(" ")[0] for each in drained] == ["shop-broker-1", "shop-broker-0"]
    assert not any("left" in each for each in drained)
    assert shop.events("DrainFailed") == failed_before
    assert shop.events("Restarted")[-2:] == [
        "shop-broker-1: out of date",
        "shop-broker-0: out of date",
    ]
    for ordinal in range(BROKERS):
        assert "drain requested" in shop.log(ordinal)
    shop.wait_until(
        lambda: sorted(shop.leader_counts("orders").values()) == [PARTITIONS // BROKERS] * BROKERS,
        "leaders spread over all brokers",
    )


@pytest.mark.long
def test_changed_secret_restarts_brokers(shop: DeployedCluster) -> None:
    shop.wait()
    before, drained_before = shop.pod_uids(), len(shop.events("Drained"))
    entries = key_variables(shop.installation.s3.bucket) | {"ROTATED": "yes"}
    with Readiness(shop) as readiness:
        shop.installation.create_secret(shop.namespace, **entries)
        shop.wait_until(
            lambda: (
                not shop.pod_uids().items() & before.items() and all(map(is_ready, shop.pods()))
            ),
            "all brokers to be restarted",
        )
        shop.wait()
    assert readiness.minimum == BROKERS - 1
    assert len(shop.events("Drained")) == drained_before + BROKERS


def test_next_spec_repairs_a_broker_that_is_never_ready(shop: DeployedCluster) -> None:
    shop.wait()
    try:
        shop.change(brokers={"image": "no-such-image"})
        shop.wait_until(lambda: "no-such-image" in _images(shop), "a broker that fails to start")
        time.sleep(QUIET_S)
        # The others are not restarted while one is not ready.
        assert _images(shop).count("no-such-image") == 1
        assert sum(map(is_ready, shop.pods())) == BROKERS - 1
        assert shop.condition("BrokersReady")["status"] == "False"
    finally:
        shop.change(brokers={"image": None})
    shop.wait()
    assert "no-such-image" not in _images(shop)
    assert all(map(is_ready, shop.pods()))


def test_invalid_settings_are_rejected(shop: DeployedCluster) -> None:
    shop.wait()
    before = shop.pod_uids()
    shop.change(config={"settings": {"broker": {"leaseTtlMs": "soon"}, "nonsense": {"a": 1}}})
    try:
        shop.wait_until(
            lambda: shop.condition("ConfigValid").get("status") == "False", "a rejection"
        )
        message = shop.condition("ConfigValid")["message"]
        assert "leaseTtlMs" in message
        assert "nonsense" in message
        assert shop.wait("Degraded")["readyBrokers"] == BROKERS
        time.sleep(QUIET_S)
        assert shop.pod_uids() == before
    finally:
        shop.change(config={"settings": {"broker": {"leaseTtlMs": 5000}, "nonsense": None}})
    shop.wait()
    assert shop.condition("ConfigValid")["status"] == "True"
    assert shop.pod_uids() == before


def _images(shop: DeployedCluster) -> list[str]:
    return [pod["spec"]["containers"][0]["image"] for pod in shop.pods()]
