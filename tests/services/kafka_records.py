"""Produces records with librdkafka, and reads them back from the beginning.

produce(address, "orders", [Sent(0, b"key", b"value", 1_000)], codec="lz4")
assert read(address, "orders") == {0: [Read(0, 1_000, b"key", b"value")]}
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from services.waiting import wait_until

READ_S_MAX = 15
BYTES_MAX = 4 * 1024 * 1024

Headers = tuple[tuple[str, bytes | None], ...]


class Sent(NamedTuple):
    partition: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Headers = ()


class Read(NamedTuple):
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def create(address: str, topic: str, partitions: int, **configs: str) -> None:
    """Create a topic; the dots of configs' names are underscores here."""
    named = {name.replace("_", "."): value for name, value in configs.items()}
    admin = AdminClient({"bootstrap.servers": address})
    (future,) = admin.create_topics([NewTopic(topic, partitions, config=named)]).values()
    future.result(READ_S_MAX)
    # Kafka answers before its metadata shows the topic.
    wait_until(lambda: topic in admin.list_topics(timeout=READ_S_MAX).topics, topic)


def produce(
    address: str,
    topic: str,
    records: Iterable[Sent],
    *,
    codec: str = "none",
    settings: Mapping[str, object] | None = None,
) -> None:
    producer = Producer(
        {
            "bootstrap.servers": address,
            "compression.type": codec,
            "enable.idempotence": True,
            "message.max.bytes": BYTES_MAX,
            **(settings or {}),
        }
    )
    failed = []

    def on_delivery(error, _message):
        if error is not None:
            failed.append(error)

    for record in records:
        producer.produce(
            topic,
            partition=record.partition,
            key=record.key,
            value=record.value,
            timestamp=record.timestamp_ms,
            headers=list(record.headers),
            on_delivery=on_delivery,
        )
        producer.poll(0)
    left = producer.flush(READ_S_MAX)
    assert not left
    assert not failed, failed


def count_offsets(address: str, topic: str) -> int:
    """How many offsets a topic has, of records and of markers; none if it does not exist."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "none"})
    try:
        partitions = consumer.list_topics(topic, READ_S_MAX).topics[topic].partitions
        bounds = [
            consumer.get_watermark_offsets(TopicPartition(topic, each), READ_S_MAX)
            for each in partitions
        ]
        return sum(end - start for start, end in bounds)
    finally:
        consumer.close()


def read(address: str, topic: str) -> dict[int, list[Read]]:
    """Every record of every partition, up to where the topic ends now."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "fetch.message.max.bytes": BYTES_MAX,
        }
    )
    try:
        partitions = sorted(consumer.list_topics(topic, READ_S_MAX).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
        result: dict[int, list[Read]] = {each: [] for each in partitions}
        ended: set[int] = set()
        while ended != set(partitions):
            message = consumer.poll(READ_S_MAX)
            assert message is not None, f"{topic} is silent; read so far: {_counts(result)}"
            if message.error():
                assert message.error().name() == "_PARTITION_EOF", message.error()
                ended.add(message.partition())
                continue
            result[message.partition()].append(
                Read(
                    message.offset(),
                    message.timestamp()[1],
                    message.key(),
                    message.value(),
                    tuple(message.headers() or ()),
                )
            )
        return result
    finally:
        consumer.close()


def _counts(records_by_partition: Mapping[int, Sequence[Read]]) -> dict[int, int]:
    return {partition: len(records) for partition, records in records_by_partition.items()}
