"""Producers and consumers of librdkafka (confluent-kafka), with default and other settings."""

import time
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_CREATE_TIME,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)

pytestmark = pytest.mark.timeout(60)

READ_S_MAX = 20
# These consumers assign partitions manually and commit nothing; groups have their own tests.
WITHOUT_GROUP = {"group.id": "none", "enable.auto.commit": False}
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def produce(address: str, topic: str, values: list[bytes], **settings: Any) -> list[int]:
    """Produce to partition 0; return the acknowledged offsets in order."""
    producer = Producer({"bootstrap.servers": address} | settings)
    reports: list[tuple[KafkaError | None, int | None]] = []
    for value in values:
        producer.produce(
            topic,
            value,
            partition=0,
            on_delivery=lambda error, message: reports.append((error, message.offset())),
        )
    assert producer.flush(READ_S_MAX) == 0
    assert {error for error, _ in reports} == {None}
    return [offset for _, offset in reports if offset is not None]


def consume(address: str, topic: str, count: int, **settings: Any) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": address} | WITHOUT_GROUP | settings)
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    messages: list[Message] = []
    deadline = time.monotonic() + READ_S_MAX
    try:
        while len(messages) < count and time.monotonic() < deadline:
            result = consumer.consume(count, 0.2)
            assert all(message.error() is None for message in result), result[0].error()
            messages += result
    finally:
        consumer.close()
    return messages


def test_default_settings_preserve_records_and_order(broker, topic):
    values = [b"value %d" % number for number in range(2000)]
    assert produce(broker.address, topic, values) == list(range(2000))
    messages = consume(broker.address, topic, 2000)
    assert [message.value() for message in messages] == values
    assert [message.offset() for message in messages] == list(range(2000))


@pytest.mark.parametrize(("acks", "idempotent"), [("1", False), ("all", False), ("all", True)])
def test_acknowledged_offsets_are_those_of_the_records(broker, topic, acks, idempotent):
    values = [b"%d" % number for number in range(500)]
    settings = {"acks": acks, "enable.idempotence": idempotent, "batch.num.messages": 7}
    offsets = produce(broker.address, topic, values, **settings)
    by_offset = {m.offset(): m.value() for m in consume(broker.address, topic, 500)}
    assert [by_offset[offset] for offset in offsets] == values


def test_records_without_acknowledgement_are_stored(broker, topic):
    produce(broker.address, topic, [b"first"])
    produce(broker.address, topic, [b"unacknowledged"] * 50, acks="0")
    assert len(consume(broker.address, topic, 51)) == 51


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_round_trips(broker, topic, codec):
    values = [b"%d " % number * 100 for number in range(300)]
    produce(broker.address, topic, values, **{"compression.type": codec})
    messages = consume(broker.address, topic, 300, **{"check.crcs": True})
    assert [message.value() for message in messages] == values


def test_keys_values_headers_and_timestamps_are_preserved(broker, topic):
    producer = Producer({"bootstrap.servers": broker.address})
    headers = [("one", b"1"), ("one", b"again"), ("null", None), ("empty", b"")]
    sent_ms = 1_700_000_000_123
    producer.produce(topic, b"value", b"key", 0, timestamp=sent_ms, headers=headers)
    producer.produce(topic, None, b"only a key", 0)
    producer.produce(topic, b"only a value", None, 0)
    producer.produce(topic, b"", b"", 0)
    producer.flush()
    whole, keyed, valued, empty = consume(broker.address, topic, 4)
    assert (whole.key(), whole.value()) == (b"key", b"value")
    assert whole.headers() == headers
    assert whole.timestamp() == (TIMESTAMP_CREATE_TIME, sent_ms)
    assert (keyed.key(), keyed.value()) == (b"only a key", None)
    assert (valued.key(), valued.value()) == (None, b"only a value")
    assert (empty.key(), empty.value()) == (b"", b"")


def test_message_size_limit_is_enforced(broker, topic):
    large = bytes(1_000_000 - 1000)
    settings = {"message.max.bytes": 4_000_000, "compression.type": "none"}
    assert produce(broker.address, topic, [large], **settings) == [0]
    (message,) = consume(broker.address, topic, 1)
    assert message.value() == large

    errors: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": broker.address} | settings)
    producer.produce(topic, bytes(2_000_000), on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(READ_S_MAX) == 0
    assert [error.code() for error in errors] == [KafkaError.MSG_SIZE_TOO_LARGE]


def test_client_with_message_sets_only_is_served(broker, topic):
    old = {"api.version.request": "false", "broker.version.fallback": "0.10.0.0"}
    values = [b"%d" % number for number in range(100)]
    produce(broker.address, topic, values, **old, **{"compression.type": "gzip"})
    for settings in (old, {}):
        messages = consume(broker.address, topic, 100, **settings)
        assert [message.value() for message in messages] == values
        assert [message.offset() for message in messages] == list(range(100))


def test_offsets_are_found_by_timestamp(broker, topic):
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(10):
        producer.produce(topic, b"%d" % number, partition=0, timestamp=1000 + number * 10)
        producer.flush()
    consumer = Consumer({"bootstrap.servers": broker.address} | WITHOUT_GROUP)
    try:
        result = consumer.offsets_for_times([TopicPartition(topic, 0, 1045)], timeout=10)
        assert result[0].offset == 5
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10) == (0, 10)
    finally:
        consumer.close()


def test_consumer_without_auto_creation_creates_no_topic(broker, topic):
    consumer = Consumer({"bootstrap.servers": broker.address} | WITHOUT_GROUP)
    try:
        assert consumer.list_topics(topic, timeout=10).topics[topic].error is not None
        assert topic not in consumer.list_topics(timeout=10).topics
    finally:
        consumer.close()


def test_records_stay_in_order_within_each_partition(broker, wire, topic):
    wire.create(topic, 8)
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(4000):
        producer.produce(topic, b"%d" % number, b"%d" % (number % 100))
    assert producer.flush(READ_S_MAX) == 0
    numbers: list[int] = []
    for partition in range(8):
        records = wire.read(topic, partition=partition)
        read = [int(record.value) for record in records]
        assert read == sorted(read)
        assert [record.offset for record in records] == list(range(len(read)))
        numbers += read
    assert sorted(numbers) == list(range(4000))
