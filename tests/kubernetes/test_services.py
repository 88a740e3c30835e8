"""Tests of Services, disruption budgets, monitors and the deletion of a cluster."""

import urllib.request

import pytest
from confluent_kafka import Producer

from kafscale.operator.kube.api import (
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
from services.kubernetes.deployed import DeployedCluster, is_ready
from services.kubernetes.installation import SECRET, Installation
from services.kubernetes.kube_client import (
    DEFINITIONS,
    ApiError,
    KubeClient,
    Manifest,
    has_condition,
)
from services.kubernetes.traffic import read_all

pytestmark = pytest.mark.timeout(240)

MONITORS = "servicemonitors.monitoring.coreos.com"
TOO_MANY = 429
RECORDS = 50


def test_brokers_run_in_a_restricted_namespace(shop: DeployedCluster) -> None:
    shop.wait()
    assert all(map(is_ready, shop.pods()))
    any_other = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "careless", "namespace": shop.namespace},
        "spec": {"containers": [{"name": "shell", "image": "test-shell"}]},
    }
    with pytest.raises(ApiError, match="restricted"):
        shop.kube.create(any_other)


def test_service_reaches_both_ports(shop: DeployedCluster) -> None:
    host, _, port = shop.servers.partition(":")
    assert port == "9092"
    topics = Producer({"bootstrap.servers": shop.servers}).list_topics(timeout=20)
    assert set(topics.brokers) == {0, 1}
    with urllib.request.urlopen(f"http://{host}:9093/metrics", timeout=10) as response:
        assert b"kafscale_produce_requests_per_second" in response.read()


def test_disruption_budget_allows_one_eviction(shop: DeployedCluster) -> None:
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
    before = shop.pod_uids()
    _evict(shop, "shop-broker-0")
    with pytest.raises(ApiError) as error:
        _evict(shop, "shop-broker-1")
    assert error.value.status == TOO_MANY
    shop.wait_until(
        lambda: (
            shop.pod_uids().get("shop-broker-0") not in {None, before["shop-broker-0"]}
            and all(map(is_ready, shop.pods()))
        ),
        "the evicted broker to be back",
    )
    shop.wait()
    assert shop.pod_uids()["shop-broker-1"] == before["shop-broker-1"]


def test_service_monitor_follows_its_definition(shop: DeployedCluster, kube: KubeClient) -> None:
    shop.wait()
    kube.apply(_definition())
    try:
        kube.wait_for(DEFINITIONS, "", MONITORS, lambda each: has_condition(each, "Established"))
        monitor = kube.wait_for(SERVICE_MONITORS, shop.namespace, "shop-broker", bool)
        assert monitor["spec"]["selector"]["matchLabels"]["cluster"] == "shop"
    finally:
        kube.delete(DEFINITIONS, "", MONITORS)
        kube.wait_until_gone(DEFINITIONS, "", MONITORS)
    # Without the definition, the cluster works as before.
    shop.change(service={"annotations": {"example.org/changed": "yes"}})
    shop.wait()


def test_recreated_cluster_finds_its_records(kafscale: Installation, shop: DeployedCluster) -> None:
    shop.wait()
    kafscale.create_topic(shop.namespace, "kept", "shop", partitions=1)
    kafscale.wait_phase(shop.namespace, "kept", "Ready", kind=TOPICS)
    producer = Producer({"bootstrap.servers": shop.servers})
    for number in range(RECORDS):
        producer.produce("kept", str(number))
    assert producer.flush(20) == 0

    shop.kube.delete(CLUSTERS, shop.namespace, "shop")
    shop.kube.wait_until_gone(CLUSTERS, shop.namespace, "shop")
    shop.wait_until(
        lambda: not _remaining_objects(shop), "all objects of the cluster to be deleted"
    )
    # The cluster is gone; the topic's resource can be deleted nevertheless.
    shop.kube.delete(TOPICS, shop.namespace, "kept")
    shop.kube.wait_until_gone(TOPICS, shop.namespace, "kept")
    assert shop.kube.get(SECRETS, shop.namespace, SECRET) is not None
    bucket = kafscale.s3.root / kafscale.s3.bucket.name / f"{shop.namespace}.shop"
    assert any(path.is_file() for path in bucket.rglob("*"))

    # The volumes of its etcd stay as well, with all metadata.
    kafscale.create_cluster(shop.namespace, "shop")
    shop.wait()
    records = read_all({"bootstrap.servers": shop.servers}, "kept", partitions=1)
    assert [int(each.value()) for each in records] == list(range(RECORDS))


def _evict(shop: DeployedCluster, pod: str) -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    shop.kube.request("POST", PODS.path(shop.namespace, pod, "eviction"), eviction)


def _remaining_objects(shop: DeployedCluster) -> list[str]:
    """Objects of the cluster that the namespace still has."""
    stays = {EVENTS, VOLUME_CLAIMS, TOPICS, SERVICE_MONITORS}
    kinds = [kind for kind in ALL if kind.is_namespaced and kind not in stays]
    return [
        f"{kind.kind} {each['metadata']['name']}"
        for kind in kinds
        for each in shop.kube.list(kind, shop.namespace)
        if each["metadata"]["name"].startswith("shop")
    ]


def _definition() -> Manifest:
    """A minimal definition of ServiceMonitor."""
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
