"""Brokers brought up to date: one at a time, drained first, and clients do not notice."""

import time
from collections.abc import Iterator

import pytest

from services.kubernetes.control_plane import ControlPlane
from services.kubernetes.deployed import Deployed, is_ready
from services.kubernetes.installation import Installation
from services.kubernetes.readiness import Readiness
from services.kubernetes.traffic import Traffic
from services.s3_server import key_variables

pytestmark = pytest.mark.timeout(240)

BROKERS = 2
PARTITIONS = 6
QUIET_S = 4
"""Two looks of the operator: whatever it does not do within these, it does not do."""


@pytest.fixture(scope="module")
def shop(control_plane: ControlPlane, kafscale: Installation) -> Iterator[Deployed]:
    with control_plane.namespace() as namespace:
        yield Deployed.created(kafscale, namespace, brokers={"replicas": BROKERS})


def test_a_changed_config_rolls_brokers_under_load(shop: Deployed) -> None:
    shop.create_topic("orders", PARTITIONS)
    shop.wait()
    before = shop.identities()
    told = len(shop.events("Drained"))
    shop.wait_until(lambda: len(shop.shares("orders")) == BROKERS, "leaders on all brokers")
    with Traffic(shop.servers, "orders", PARTITIONS) as traffic, Readiness(shop) as readiness:
        shop.change(config={"flushIntervalMs": 100})
        shop.wait()
    traffic.verify()
    after = shop.identities()
    assert after.keys() == before.keys()
    assert not after.items() & before.items()
    assert readiness.least == BROKERS - 1
    # The last one first, and each handed over what it had before it went.
    drained = shop.events("Drained")[told:]
    assert [each.split(" ")[0] for each in drained] == ["shop-broker-1", "shop-broker-0"]
    assert not any("left" in each for each in drained)
    assert not shop.events("DrainFailed")
    assert shop.events("Restarted")[-2:] == [
        "shop-broker-1: out of date",
        "shop-broker-0: out of date",
    ]
    for ordinal in range(BROKERS):
        assert "drain requested" in shop.log(ordinal)
    shop.wait_until(
        lambda: sorted(shop.shares("orders").values()) == [PARTITIONS // BROKERS] * BROKERS,
        "leaders spread over all brokers",
    )


def test_a_changed_secret_rolls_brokers(shop: Deployed) -> None:
    shop.wait()
    before, told = shop.identities(), len(shop.events("Drained"))
    entries = key_variables(shop.installation.s3.bucket) | {"ROTATED": "yes"}
    with Readiness(shop) as readiness:
        shop.installation.create_secret(shop.namespace, **entries)
        shop.wait_until(
            lambda: (
                not shop.identities().items() & before.items() and all(map(is_ready, shop.pods()))
            ),
            "all brokers to be new",
        )
        shop.wait()
    assert readiness.least == BROKERS - 1
    assert len(shop.events("Drained")) == told + BROKERS


def test_a_broker_that_never_gets_ready_is_repaired_by_the_next_spec(shop: Deployed) -> None:
    shop.wait()
    try:
        shop.change(brokers={"image": "no-such-image"})
        shop.wait_until(lambda: "no-such-image" in _images(shop), "a broker that cannot start")
        time.sleep(QUIET_S)
        # The others are left alone, as long as one is not ready.
        assert _images(shop).count("no-such-image") == 1
        assert sum(map(is_ready, shop.pods())) == BROKERS - 1
        assert shop.condition("BrokersReady")["status"] == "False"
    finally:
        shop.change(brokers={"image": None})
    shop.wait()
    assert "no-such-image" not in _images(shop)
    assert all(map(is_ready, shop.pods()))


def test_settings_that_no_broker_would_take_are_refused(shop: Deployed) -> None:
    shop.wait()
    before = shop.identities()
    shop.change(config={"settings": {"broker": {"leaseTtlMs": "soon"}, "nonsense": {"a": 1}}})
    try:
        shop.wait_until(lambda: shop.condition("ConfigValid").get("status") == "False", "a refusal")
        refused = shop.condition("ConfigValid")["message"]
        assert "leaseTtlMs" in refused
        assert "nonsense" in refused
        assert shop.wait("Degraded")["readyBrokers"] == BROKERS
        time.sleep(QUIET_S)
        assert shop.identities() == before
    finally:
        shop.change(config={"settings": {"broker": {"leaseTtlMs": 5000}, "nonsense": None}})
    shop.wait()
    assert shop.condition("ConfigValid")["status"] == "True"
    assert shop.identities() == before


def _images(shop: Deployed) -> list[str]:
    return [pod["spec"]["containers"][0]["image"] for pod in shop.pods()]
