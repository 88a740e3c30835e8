"""Producers, consumers and the admin client of kafka-python, with default and other settings."""

from contextlib import closing
from itertools import islice

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

pytestmark = pytest.mark.timeout(40)


def consume(address, topic, count):
    partition = TopicPartition(topic, 0)
    settings = {"bootstrap_servers": address, "group_id": None, "consumer_timeout_ms": 15_000}
    with closing(KafkaConsumer(**settings)) as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        return list(islice(consumer, count))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"acks": 0, "enable_idempotence": False},
        {"acks": 1, "enable_idempotence": False},
        {"acks": "all", "enable_idempotence": False},
        {"compression_type": "gzip"},
        {"compression_type": "lz4"},
        {"compression_type": "snappy"},
        {"compression_type": "zstd"},
    ],
    ids=str,
)
def test_consumer_reads_what_the_producer_sent(broker, topic, settings):
    values = [b"value %d" % number for number in range(200)]
    with closing(KafkaProducer(bootstrap_servers=broker.address, **settings)) as producer:
        sent = [producer.send(topic, value, b"key") for value in values]
        producer.flush(20)
        if settings.get("acks") != 0:
            assert [each.get(10).offset for each in sent] == list(range(200))
    records = consume(broker.address, topic, 200)
    assert [record.value for record in records] == values
    assert [record.offset for record in records] == list(range(200))


def test_headers_nulls_and_timestamps_are_preserved(broker, topic):
    with closing(KafkaProducer(bootstrap_servers=broker.address)) as producer:
        headers = [("name", b"value"), ("name", b"")]
        producer.send(topic, None, b"key", headers=headers, timestamp_ms=123_456).get(10)
    (record,) = consume(broker.address, topic, 1)
    assert (record.key, record.value, record.timestamp) == (b"key", None, 123_456)
    assert list(record.headers) == headers


def test_consumer_finds_offsets(broker, topic):
    with closing(KafkaProducer(bootstrap_servers=broker.address)) as producer:
        for number in range(5):
            producer.send(topic, b"value", timestamp_ms=1000 + number).get(10)
    partition = TopicPartition(topic, 0)
    with closing(KafkaConsumer(bootstrap_servers=broker.address)) as consumer:
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: 5}
        assert consumer.offsets_for_times({partition: 1003})[partition].offset == 3


def test_admin_client_creates_describes_and_deletes_topics(broker, topic):
    with closing(KafkaAdminClient(bootstrap_servers=broker.address)) as admin:
        admin.create_topics([NewTopic(topic, 2, 1)])
        (described,) = admin.describe_topics([topic])
        assert len(described["partitions"]) == 2
        admin.delete_topics([topic])
        assert topic not in admin.list_topics()
