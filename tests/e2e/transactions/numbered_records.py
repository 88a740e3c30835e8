"""Numbered records of an input topic, which programs read."""

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from services.committed_records import Values

PARTITIONS = 3
RECORDS = 1500
KEYS = 50


def create(bootstrap: str, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    created = admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics])
    for future in created.values():
        future.result(30)


def fill(bootstrap: str, topic: str, count: int = RECORDS, first: int = 0) -> Values:
    """Produce records; a key has one partition. Return the values of each partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    sent: Values = {partition: [] for partition in range(PARTITIONS)}
    for number in range(first, first + count):
        key = number % KEYS
        partition = key % PARTITIONS
        sent[partition].append(f"value {number}")
        producer.produce(topic, f"value {number}", f"key {key}", partition)
        producer.poll(0)
    assert producer.flush(60) == 0
    return sent
