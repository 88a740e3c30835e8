"""A cluster from its resource: it comes up, serves clients, is changed, heals and goes."""

from confluent_kafka import Consumer, Producer

from kafscale.operator.kube.kinds import TOPICS
from services.kubernetes.installation import Installation


def produced(servers: str, topic: str, count: int) -> int:
    """How many records of so many were acknowledged."""
    acknowledged = []
    producer = Producer({"bootstrap.servers": servers, "message.timeout.ms": 60_000})
    for number in range(count):
        producer.produce(
            topic, str(number), on_delivery=lambda error, _: acknowledged.append(error is None)
        )
        producer.poll(0)
    producer.flush(60)
    return sum(acknowledged)


def consumed(servers: str, topic: str, count: int) -> set[str]:
    """The values of a topic, once there are so many."""
    settings = {"bootstrap.servers": servers, "group.id": "all", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    values: set[str] = set()
    try:
        for _ in range(600):
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                values.add(message.value().decode())
            if len(values) >= count:
                break
    finally:
        consumer.close()
    return values


def test_a_cluster_comes_up_and_serves(kafscale: Installation, namespace: str) -> None:
    kafscale.create_cluster(namespace, "demo")
    kafscale.create_topic(namespace, "orders", "demo")
    status = kafscale.wait_phase(namespace, "demo", "Ready")
    assert (status["brokerCount"], status["readyBrokers"]) == (2, 2)
    topic = kafscale.wait_phase(namespace, "orders", "Ready", kind=TOPICS)
    assert [each["id"] for each in topic["partitions"]] == [0, 1, 2]
    servers = kafscale.bootstrap(namespace, "demo")
    assert produced(servers, "orders", 500) == 500
    assert consumed(servers, "orders", 500) == {str(number) for number in range(500)}
