"""A cluster that nobody uses sleeps, and wakes with everything when somebody comes."""

import pytest
from confluent_kafka import Producer

from kafscale.operator.kube.kinds import CLUSTERS, ENDPOINT_SLICES
from services.kubernetes.deployed import Deployed
from services.kubernetes.installation import Installation
from services.kubernetes.traffic import consumed

IDLE_SECONDS = 10
RECORDS = {str(number) for number in range(200)}


def produce(servers: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "message.timeout.ms": 30_000})
    for value in sorted(RECORDS):
        producer.produce("orders", value)
    assert producer.flush(30) == 0


@pytest.mark.timeout(300)
def test_a_client_wakes_a_cluster_that_sleeps(kafscale: Installation, namespace: str) -> None:
    nap = Deployed.created(
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
    produce(nap.servers)

    status = nap.wait("Sleeping")
    nap.wait_until(lambda: not nap.pods(), "brokers to be gone")
    assert nap.condition("Ready")["status"] == "True"
    assert status["bootstrapServers"] == nap.servers
    assert nap.events("ScaledToZero") == [f"no client was connected for {IDLE_SECONDS} seconds"]
    assert doorbell(nap) is not None

    assert consumed(nap.servers, "orders", len(RECORDS)) == RECORDS
    assert nap.events("WokenUp") == ["a client connected"]
    nap.wait_until(lambda: doorbell(nap) is None, "the doorbell to be taken down")

    nap.wait("Sleeping")
    nap.kube.patch(
        CLUSTERS, namespace, "nap", {"metadata": {"annotations": {"kafscale.io/wake": "now"}}}
    )
    nap.wait_until(lambda: len(nap.events("WokenUp")) == 2, "the wish to be heard")
    nap.wait_until(lambda: len(nap.pods()) == 2, "brokers to come back")
    found = nap.kube.get(CLUSTERS, namespace, "nap")
    assert found is not None
    assert "kafscale.io/wake" not in found["metadata"]["annotations"]


def doorbell(cluster: Deployed) -> object:
    name = f"{cluster.name}-broker-wake"
    return cluster.kube.get(ENDPOINT_SLICES, cluster.namespace, name)
