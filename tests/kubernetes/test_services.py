"""What surrounds brokers: how they are reached and guarded, and what remains when they go."""

import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from kafscale.operator.kube.kinds import (
    ALL,
    CLUSTERS,
    DISRUPTION_BUDGETS,
    EVENTS,
    NETWORK_POLICIES,
    PODS,
    SECRETS,
    SERVICE_MONITORS,
    TOPICS,
    VOLUME_CLAIMS,
)
from services.kubernetes.control_plane import RESTRICTED, ControlPlane
from services.kubernetes.deployed import Deployed, is_ready
from services.kubernetes.installation import SECRET, Installation
from services.kubernetes.kube_client import (
    DEFINITIONS,
    KubeClient,
    KubeRefusalError,
    Manifest,
    has_condition,
)
from services.kubernetes.traffic import everything

pytestmark = pytest.mark.timeout(240)

MONITORS = "servicemonitors.monitoring.coreos.com"
TOO_MANY = 429
RECORDS = 50


@pytest.fixture(scope="module")
def shop(control_plane: ControlPlane, kafscale: Installation) -> Iterator[Deployed]:
    """In a namespace that takes nothing but restricted pods."""
    with control_plane.namespace(labels=RESTRICTED) as namespace:
        yield Deployed.created(kafscale, namespace)


def test_brokers_run_where_nothing_but_restricted_pods_may(shop: Deployed) -> None:
    shop.wait()
    assert all(map(is_ready, shop.pods()))
    any_other = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "careless", "namespace": shop.namespace},
        "spec": {"containers": [{"name": "shell", "image": "test-shell"}]},
    }
    with pytest.raises(KubeRefusalError, match="restricted"):
        shop.kube.create(any_other)


def test_both_ports_are_reached_through_the_service(shop: Deployed) -> None:
    host, _, port = shop.servers.partition(":")
    assert port == "9092"
    topics = Producer({"bootstrap.servers": shop.servers}).list_topics(timeout=20)
    assert set(topics.brokers) == {0, 1}
    with urllib.request.urlopen(f"http://{host}:9093/metrics", timeout=10) as answer:
        assert b"kafscale_produce_requests_per_second" in answer.read()


def test_one_broker_at_a_time_may_be_evicted(shop: Deployed) -> None:
    shop.wait()
    assert shop.kube.get(NETWORK_POLICIES, shop.namespace, "shop-broker") is not None
    shop.kube.wait_for(
        DISRUPTION_BUDGETS,
        shop.namespace,
        "shop-broker",
        lambda pod_disruption_budget: (
            pod_disruption_budget["status"].get("disruptionsAllowed") == 1
        ),
    )
    before = shop.identities()
    _evict(shop, "shop-broker-0")
    with pytest.raises(KubeRefusalError) as refusal:
        _evict(shop, "shop-broker-1")
    assert refusal.value.status == TOO_MANY
    shop.wait_until(
        lambda: (
            shop.identities().get("shop-broker-0") not in {None, before["shop-broker-0"]}
            and all(map(is_ready, shop.pods()))
        ),
        "the evicted broker to be back",
    )
    shop.wait()
    assert shop.identities()["shop-broker-1"] == before["shop-broker-1"]


def test_brokers_are_monitored_where_monitors_are_known(shop: Deployed, kube: KubeClient) -> None:
    shop.wait()
    kube.apply(_definition())
    try:
        kube.wait_for(DEFINITIONS, "", MONITORS, lambda each: has_condition(each, "Established"))
        monitor = kube.wait_for(SERVICE_MONITORS, shop.namespace, "shop-broker", bool)
        assert monitor["spec"]["selector"]["matchLabels"]["cluster"] == "shop"
    finally:
        kube.delete(DEFINITIONS, "", MONITORS)
        kube.wait_until_gone(DEFINITIONS, "", MONITORS)
    # It is done without again, and nothing is wrong with that.
    shop.change(service={"annotations": {"example.org/changed": "yes"}})
    shop.wait()


def test_a_cluster_that_goes_leaves_its_records_and_finds_them_again(
    kafscale: Installation, shop: Deployed
) -> None:
    shop.wait()
    kafscale.create_topic(shop.namespace, "orders", "shop", partitions=1)
    kafscale.wait_phase(shop.namespace, "orders", "Ready", kind=TOPICS)
    producer = Producer({"bootstrap.servers": shop.servers})
    for number in range(RECORDS):
        producer.produce("orders", str(number))
    assert producer.flush(20) == 0

    shop.kube.delete(CLUSTERS, shop.namespace, "shop")
    shop.kube.wait_until_gone(CLUSTERS, shop.namespace, "shop")
    shop.wait_until(lambda: not _left(shop), "all that belongs to the cluster to be gone")
    # Nobody is there to ask about the topic; its resource goes all the same.
    shop.kube.delete(TOPICS, shop.namespace, "orders")
    shop.kube.wait_until_gone(TOPICS, shop.namespace, "orders")
    assert shop.kube.get(SECRETS, shop.namespace, SECRET) is not None
    bucket = kafscale.s3.root / kafscale.s3.bucket.name / f"{shop.namespace}.shop"
    assert any(path.is_file() for path in bucket.rglob("*"))

    # The volumes of its etcd stay as well, and with them all that it knew.
    kafscale.create_cluster(shop.namespace, "shop")
    shop.wait()
    found = everything({"bootstrap.servers": shop.servers}, "orders", partitions=1)
    assert [int(each.value()) for each in found] == list(range(RECORDS))


def _evict(shop: Deployed, pod: str) -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    shop.kube.request("POST", PODS.path(shop.namespace, pod, "eviction"), eviction)


def _left(shop: Deployed) -> list[str]:
    """What the namespace still has that was made for the cluster."""
    stays = {EVENTS, VOLUME_CLAIMS, TOPICS, SERVICE_MONITORS}
    kinds = [kind for kind in ALL if kind.is_namespaced and kind not in stays]
    return [
        f"{kind.kind} {each['metadata']['name']}"
        for kind in kinds
        for each in shop.kube.list(kind, shop.namespace)
        if each["metadata"]["name"].startswith("shop")
    ]


def _definition() -> Manifest:
    """As little of a ServiceMonitor as there can be."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": DEFINITIONS.api_version,
        "kind": DEFINITIONS.kind,
        "metadata": {"name": MONITORS},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {
                "kind": "ServiceMonitor",
                "plural": "servicemonitors",
                "singular": "servicemonitor",
            },
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
