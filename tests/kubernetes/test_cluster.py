"""Tests that a cluster becomes ready and serves clients."""

from confluent_kafka import Producer

from kafscale.operator.kube.api import TOPICS
from services.kubernetes.installation import Installation
from services.kubernetes.traffic import consume_values


def produce_and_count(servers: str, topic: str, count: int) -> int:
    """The number of acknowledged records."""
    acknowledged = []
    producer = Producer({"bootstrap.servers": servers, "message.timeout.ms": 60_000})
    for number in range(count):
        producer.produce(
            topic, str(number), on_delivery=lambda error, _: acknowledged.append(error is None)
        )
        producer.poll(0)
    producer.flush(60)
    return sum(acknowledged)


def test_cluster_becomes_ready_and_serves(kafscale: Installation, namespace: str) -> None:
    kafscale.create_cluster(namespace, "demo")
    kafscale.create_topic(namespace, "orders", "demo")
    status = kafscale.wait_phase(namespace, "demo", "Ready")
    assert (status["brokerCount"], status["readyBrokers"]) == (2, 2)
    topic = kafscale.wait_phase(namespace, "orders", "Ready", kind=TOPICS)
    assert [each["id"] for each in topic["partitions"]] == [0, 1, 2]
    servers = kafscale.bootstrap(namespace, "demo")
    assert produce_and_count(servers, "orders", 500) == 500
    assert consume_values(servers, "orders", 500) == {str(number) for number in range(500)}
