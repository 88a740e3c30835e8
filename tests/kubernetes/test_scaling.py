"""More brokers and fewer, by hand and by load: each has its share, and clients do not notice."""

import time
from collections.abc import Iterator

import pytest

from kafscale.operator.kube.kinds import AUTOSCALERS, STATEFUL_SETS
from services.kubernetes.control_plane import ControlPlane
from services.kubernetes.deployed import Deployed
from services.kubernetes.installation import Installation
from services.kubernetes.metrics_api import MetricsApi
from services.kubernetes.readiness import Readiness
from services.kubernetes.traffic import Traffic

pytestmark = pytest.mark.timeout(240)

PARTITIONS = 12
QUIET_S = 4
"""Two looks of the operator: whatever it does not do within these, it does not do."""
PRODUCE_RATE = "kafscale_produce_requests_per_second"


@pytest.fixture(scope="module")
def shop(control_plane: ControlPlane, kafscale: Installation) -> Iterator[Deployed]:
    with control_plane.namespace() as namespace:
        shop = Deployed.created(kafscale, namespace, brokers={"replicas": 3})
        shop.create_topic("orders", PARTITIONS)
        yield shop


def test_brokers_are_added_and_removed_under_load(shop: Deployed) -> None:
    shop.wait()
    with Traffic(shop.servers, "orders", PARTITIONS) as traffic, Readiness(shop) as readiness:
        for replicas in (6, 3):
            shop.change(brokers={"replicas": replicas})
            status = shop.wait()
            assert (status["brokerCount"], status["readyBrokers"]) == (replicas, replicas)
            _wait_for_fair_shares(shop, replicas)
    traffic.verify()
    assert readiness.least == 3
    # The last one first, and each handed over what it had before it went.
    drained = shop.events("Drained")[-3:]
    assert [each.split(":")[0] for each in drained] == [
        f"shop-broker-{number} (scale-down)" for number in (5, 4, 3)
    ]
    assert not any("left" in each for each in drained)
    assert not shop.events("DrainFailed")


def test_what_load_asks_for_is_left_alone(shop: Deployed, metrics: MetricsApi) -> None:
    shop.wait()
    try:
        shop.change(autoscaling={"enabled": True, "minReplicas": 3, "maxReplicas": 5})
        shop.wait()
        assert shop.kube.get(AUTOSCALERS, shop.namespace, "shop-broker") is not None
        # By hand, as long as nothing is known about load.
        _scale(shop, 4)
        _wait_for_replicas(shop, 4)
        # By load; a broker does three times of what it should.
        metrics.show(shop.namespace, "cpu", "10m")
        metrics.show(shop.namespace, "memory", "10Mi")
        metrics.show(shop.namespace, PRODUCE_RATE, "3000")
        _wait_for_replicas(shop, 5)
        shop.change(service={"annotations": {"example.org/changed": "yes"}})
        assert shop.wait()["readyBrokers"] == 5
        assert shop.stateful_set()["spec"]["replicas"] == 5
        assert shop.stateful_set()["status"]["readyReplicas"] == 5
    finally:
        metrics.hide(shop.namespace)
        shop.change(autoscaling={"enabled": False}, brokers={"replicas": 3})
    # Without autoscaling, the number is that of the spec again.
    assert shop.wait()["readyBrokers"] == 3
    assert shop.kube.get(AUTOSCALERS, shop.namespace, "shop-broker") is None


def _scale(shop: Deployed, replicas: int) -> None:
    """As `kubectl scale` does."""
    patch = {"spec": {"replicas": replicas}}
    shop.kube.patch(STATEFUL_SETS, shop.namespace, "shop-broker", patch, subresource="scale")


def _wait_for_replicas(shop: Deployed, count: int) -> None:
    """There are so many, and the operator has agreed to that for a while."""
    shop.wait_until(
        lambda: shop.stateful_set()["status"].get("readyReplicas") == count, f"{count} brokers"
    )
    time.sleep(QUIET_S)
    assert shop.wait()["readyBrokers"] == count
    assert shop.stateful_set()["spec"]["replicas"] == count


def _wait_for_fair_shares(shop: Deployed, brokers: int) -> None:
    fair = PARTITIONS // brokers

    def is_fair() -> bool:
        shares = shop.shares("orders")
        return set(shares) == set(range(brokers)) and all(
            abs(share - fair) <= 1 for share in shares.values()
        )

    shop.wait_until(is_fair, f"a fair share for each of {brokers} brokers")
