"""Tests of scaling by spec and by load: leaders are spread evenly, unnoticed by clients."""

import time
from collections.abc import Iterator

import pytest

from kafscale.operator.kube.api import AUTOSCALERS, STATEFUL_SETS
from services.kubernetes.control_plane import ControlPlane
from services.kubernetes.deployed import DeployedCluster
from services.kubernetes.installation import Installation
from services.kubernetes.metrics_api import MetricsApi
from services.kubernetes.readiness import Readiness
from services.kubernetes.traffic import Traffic

pytestmark = pytest.mark.timeout(240)

PARTITIONS = 12
QUIET_S = 4
"""Two resyncs of the operator: what it does not do within these, it never does."""
PRODUCE_RATE = "kafscale_produce_requests_per_second"


@pytest.fixture(scope="module")
def shop(control_plane: ControlPlane, kafscale: Installation) -> Iterator[DeployedCluster]:
    with control_plane.namespace() as namespace:
        shop = DeployedCluster.created(kafscale, namespace, brokers={"replicas": 3})
        shop.create_topic("orders", PARTITIONS)
        yield shop


def test_brokers_are_added_and_removed_under_load(shop: DeployedCluster) -> None:
    shop.wait()
    with Traffic(shop.servers, "orders", PARTITIONS) as traffic, Readiness(shop) as readiness:
        for replicas in (6, 3):
            shop.change(brokers={"replicas": replicas})
            status = shop.wait()
            assert (status["brokerCount"], status["readyBrokers"]) == (replicas, replicas)
            _wait_for_even_leaders(shop, replicas)
    traffic.verify()
    assert readiness.minimum == 3
    # The last one first, each fully drained before it stopped.
    drained = shop.events("Drained")[-3:]
    assert [each.split(":")[0] for each in drained] == [
        f"shop-broker-{number} (scale-down)" for number in (5, 4, 3)
    ]
    assert not any("left" in each for each in drained)
    assert not shop.events("DrainFailed")


@pytest.mark.long
def test_replicas_chosen_by_autoscaling_are_kept(
    shop: DeployedCluster, metrics: MetricsApi
) -> None:
    shop.wait()
    try:
        shop.change(autoscaling={"enabled": True, "minReplicas": 3, "maxReplicas": 5})
        shop.wait()
        assert shop.kube.get(AUTOSCALERS, shop.namespace, "shop-broker") is not None
        # By hand, while no metrics are available.
        _scale(shop, 4)
        _wait_for_replicas(shop, 4)
        # By load, at three times the target per broker.
        metrics.set_value(shop.namespace, "cpu", "10m")
        metrics.set_value(shop.namespace, "memory", "10Mi")
        metrics.set_value(shop.namespace, PRODUCE_RATE, "3000")
        _wait_for_replicas(shop, 5)
        shop.change(service={"annotations": {"example.org/changed": "yes"}})
        assert shop.wait()["readyBrokers"] == 5
        assert shop.stateful_set()["spec"]["replicas"] == 5
        assert shop.stateful_set()["status"]["readyReplicas"] == 5
    finally:
        metrics.clear(shop.namespace)
        shop.change(autoscaling={"enabled": False}, brokers={"replicas": 3})
    # Without autoscaling, the number is that of the spec again.
    assert shop.wait()["readyBrokers"] == 3
    assert shop.kube.get(AUTOSCALERS, shop.namespace, "shop-broker") is None


def _scale(shop: DeployedCluster, replicas: int) -> None:
    """As `kubectl scale` does."""
    patch = {"spec": {"replicas": replicas}}
    shop.kube.patch(STATEFUL_SETS, shop.namespace, "shop-broker", patch, subresource="scale")


def _wait_for_replicas(shop: DeployedCluster, count: int) -> None:
    """Wait until there are `count` brokers, and the operator keeps them for a while."""
    shop.wait_until(
        lambda: shop.stateful_set()["status"].get("readyReplicas") == count, f"{count} brokers"
    )
    time.sleep(QUIET_S)
    assert shop.wait()["readyBrokers"] == count
    assert shop.stateful_set()["spec"]["replicas"] == count


def _wait_for_even_leaders(shop: DeployedCluster, brokers: int) -> None:
    fair = PARTITIONS // brokers

    def is_even() -> bool:
        leader_counts = shop.leader_counts("orders")
        return set(leader_counts) == set(range(brokers)) and all(
            abs(share - fair) <= 1 for share in leader_counts.values()
        )

    shop.wait_until(is_even, f"a fair share for each of {brokers} brokers")
