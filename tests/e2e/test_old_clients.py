"""Clients of former years: message formats and API versions since Kafka 0.8.2, in both directions.

What an old client produces is stored in the current format, and old members of groups read what
current clients have produced, with headers, and what old ones have.
"""

import time

import pytest
from confluent_kafka import Consumer, TopicPartition

from kafscale.records import Codec, Header, Record, build, split
from services.old_clients import OLD_CLIENTS, RECORDS
from services.selection import long_except

pytestmark = pytest.mark.timeout(600)  # The first run downloads or builds the clients.

REPRESENTATIVE = {
    "Java 0.9.0.1",
    "Java 1.1.1",
    "librdkafka 0.11.5 for 0.9",
    "kafka-python 1.4.7 for 0.9",
}


@pytest.fixture(params=long_except(OLD_CLIENTS, REPRESENTATIVE.__contains__))
def client(request):
    client = OLD_CLIENTS[request.param]
    if missing := client.missing():
        pytest.skip(f"no {missing} here")
    return client


def values_of(codec):
    return [f"{codec} {number}" for number in range(RECORDS)]


def committed(broker, group, topic):
    with_group = Consumer({"bootstrap.servers": broker.address, "group.id": group})
    [found] = with_group.committed([TopicPartition(topic, 0)], timeout=10)
    with_group.close()
    return found.offset


def test_records_of_old_and_current_clients_are_read_by_both(client, broker, topic, wire):
    topics = {codec: f"{topic}-{codec}" for codec in client.codecs}
    for name in topics.values():
        wire.create(name)

    client.produce(broker.address, topic, client.codecs)
    for codec, name in topics.items():
        stored = wire.read(name)
        assert [record.value.decode() for record in stored] == values_of(codec)
        batches = split(b"".join(wire.fetch(name).records))
        # librdkafka compresses no batch that would become larger.
        assert Codec[codec.upper()] in {batch.codec for batch in batches}
    if not client.can_consume:
        return

    now_ms = time.time_ns() // 1_000_000
    for codec, name in topics.items():
        record = Record(0, now_ms, b"key", b"new", (Header("name", b"header"),))
        batch = build([record], codec=Codec[codec.upper()])
        assert wire.produce(name, batch).error_code == 0
    group, count = f"{topic}-group", len(topics) * (RECORDS + 1)
    consumed = client.consume(broker.address, topic, group, count, client.codecs)
    for codec in topics:
        own = [value for value in consumed if value.startswith(f"{codec} ")]
        assert own == values_of(codec)
    assert consumed.count("new") == len(topics)
    for name in topics.values():
        assert committed(broker, group, name) == RECORDS + 1

    client.produce(broker.address, topic, client.codecs[:1])
    again = client.consume(broker.address, topic, group, RECORDS, client.codecs)
    assert again == values_of(client.codecs[0])
