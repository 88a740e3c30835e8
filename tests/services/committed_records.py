"""Reads whole topics as a consumer of committed records sees them, by librdkafka."""

import time
from collections import defaultdict
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

READ_S_MAX: Final = 120

Values = dict[int, list[str]]


def read_values(bootstrap: str, topic: str, *, isolation: str = "read_committed") -> Values:
    """The values of each partition, up to its last stable offset or its end."""
    return {
        partition: [(message.value() or b"").decode() for message in messages]
        for partition, messages in read_messages(bootstrap, topic, isolation=isolation).items()
    }


def read_messages(
    bootstrap: str, topic: str, *, isolation: str = "read_committed"
) -> dict[int, list[Message]]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader-of-committed-records",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    try:
        return _read(consumer, topic)
    finally:
        consumer.close()


def _read(consumer: Consumer, topic: str) -> dict[int, list[Message]]:
    partitions = set(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
    found: dict[int, list[Message]] = defaultdict(list)
    unfinished = set(partitions)
    deadline = time.monotonic() + READ_S_MAX
    while unfinished:
        assert time.monotonic() < deadline, f"partitions {unfinished} of {topic} have no end"
        for message in consumer.consume(1000, 0.2):
            error = message.error()
            partition = message.partition()
            assert partition is not None or error is not None
            if error is None:
                found[partition].append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(partition)
    return {partition: found[partition] for partition in sorted(partitions)}
