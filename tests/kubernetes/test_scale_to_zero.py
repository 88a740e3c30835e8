"""Tests that an idle cluster scales to zero, and wakes up with all records for a client."""

import pytest
from confluent_kafka import Producer

from kafscale.operator.kube.api import CLUSTERS, ENDPOINT_SLICES
from services.kubernetes.deployed import DeployedCluster
from services.kubernetes.installation import Installation
from services.kubernetes.traffic import consume_values

IDLE_SECONDS = 10
RECORDS = {str(number) for number in range(200)}


def produce(servers: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "message.timeout.ms": 30_000})
    for value in sorted(RECORDS):
        producer.produce("orders", value)
    assert producer.flush(30) == 0


@pytest.mark.timeout(300)
def test_client_wakes_a_cluster_at_zero(kafscale: Installation, namespace: str) -> None:
    cluster = DeployedCluster.created(
        kafscale,
        namespace,
        "nap",
        brokers={"replicas": 2, "terminationGracePeriodSeconds": 10},
        autoscaling={
            "enabled": False,
            "scaleToZero": {"enabled": True, "idleSeconds": IDLE_SECONDS},
        },
    )
    kafscale.create_topic(namespace, "orders", "nap")
    produce(cluster.servers)

    status = cluster.wait("Sleeping")
    cluster.wait_until(lambda: not cluster.pods(), "brokers to be gone")
    assert cluster.condition("Ready")["status"] == "True"
    assert status["bootstrapServers"] == cluster.servers
    assert cluster.events("ScaledToZero") == [f"no client was connected for {IDLE_SECONDS} seconds"]
    assert wake_endpoint_slice(cluster) is not None

    assert consume_values(cluster.servers, "orders", len(RECORDS)) == RECORDS
    assert cluster.events("WokenUp") == ["a client connected"]
    cluster.wait_until(lambda: wake_endpoint_slice(cluster) is None, "the wake listener to stop")

    cluster.wait("Sleeping")
    cluster.kube.patch(
        CLUSTERS, namespace, "nap", {"metadata": {"annotations": {"kafscale.io/wake": "now"}}}
    )
    cluster.wait_until(
        lambda: len(cluster.events("WokenUp")) == 2, "the wake annotation to be handled"
    )
    cluster.wait_until(lambda: len(cluster.pods()) == 2, "brokers to come back")
    resource = cluster.kube.get(CLUSTERS, namespace, "nap")
    assert resource is not None
    assert "kafscale.io/wake" not in resource["metadata"]["annotations"]


def wake_endpoint_slice(cluster: DeployedCluster) -> object:
    name = f"{cluster.name}-broker-wake"
    return cluster.kube.get(ENDPOINT_SLICES, cluster.namespace, name)
