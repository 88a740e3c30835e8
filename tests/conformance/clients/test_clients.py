"""Real clients produce and consume over our codecs, with API versions of several Kafka releases."""

import asyncio
from dataclasses import dataclass

import aiokafka
import confluent_kafka
import kafka
import pytest

from conformance.clients.scripted_broker import ScriptedBroker
from kafscale.records import Codec, iterate, split

TOPIC = "judged"
COUNT = 60

ERAS = {
    "newest": {},
    # The last versions before flexible ones: Kafka 2.3.
    "batches": {"Produce": 8, "Fetch": 11, "Metadata": 8, "ApiVersions": 2, "ListOffsets": 5},
    # The last versions with message sets: Kafka 0.10.
    "sets": {"Produce": 2, "Fetch": 3, "Metadata": 2, "ApiVersions": 0, "ListOffsets": 1},
}
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@dataclass(frozen=True)
class Sent:
    key: bytes | None
    value: bytes | None
    timestamp_ms: int


def samples() -> list[Sent]:
    records = [
        Sent(b"key-%d" % i, b"value-%d " % i * 40, 1_700_000_000_000 + i) for i in range(COUNT)
    ]
    return [
        *records,
        Sent(None, b"no key", 1_700_000_001_000),
        Sent(b"gone", None, 1_700_000_002_000),
    ]


def librdkafka(broker: ScriptedBroker, records: list[Sent], codec: str, era: str) -> list[Sent]:
    common = {"bootstrap.servers": f"127.0.0.1:{broker.port}", "log_level": 0}
    producer = confluent_kafka.Producer(
        common
        | {"compression.type": codec, "enable.idempotence": era != "sets", "linger.ms": 5_000}
    )
    for sent in records:
        producer.produce(TOPIC, sent.value, sent.key, timestamp=sent.timestamp_ms)
    assert producer.flush(10) == 0
    consumer = confluent_kafka.Consumer(common | {"group.id": "judge", "enable.auto.commit": False})
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
    messages = consumer.consume(len(records), timeout=10)
    consumer.close()
    assert [message.offset() for message in messages] == list(range(len(records)))
    return [Sent(m.key(), m.value(), m.timestamp()[1]) for m in messages]


def kafka_python(broker: ScriptedBroker, records: list[Sent], codec: str, _era: str) -> list[Sent]:
    address = f"127.0.0.1:{broker.port}"
    producer = kafka.KafkaProducer(
        bootstrap_servers=address,
        compression_type=None if codec == "none" else codec,
        linger_ms=5_000,
        enable_idempotence=False,
    )
    for sent in records:
        producer.send(TOPIC, sent.value, sent.key, timestamp_ms=sent.timestamp_ms)
    producer.flush(10)
    producer.close()
    consumer = kafka.KafkaConsumer(bootstrap_servers=address, consumer_timeout_ms=10_000)
    partition = kafka.TopicPartition(TOPIC, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    messages = [next(consumer) for _ in records]
    consumer.close()
    return [Sent(m.key, m.value, m.timestamp) for m in messages]


def aio_kafka(broker: ScriptedBroker, records: list[Sent], codec: str, _era: str) -> list[Sent]:
    async def run() -> list[Sent]:
        address = f"127.0.0.1:{broker.port}"
        compression = None if codec == "none" else codec
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=address, compression_type=compression, linger_ms=20
        ) as producer:
            futures = [
                await producer.send(TOPIC, s.value, s.key, partition=0, timestamp_ms=s.timestamp_ms)
                for s in records
            ]
            await asyncio.gather(*futures)
        partition = aiokafka.TopicPartition(TOPIC, 0)
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=address)
        consumer.assign([partition])
        async with consumer:
            consumer.seek(partition, 0)
            messages = [await asyncio.wait_for(consumer.getone(), 10) for _ in records]
        return [Sent(m.key, m.value, m.timestamp) for m in messages]

    return asyncio.run(run())


CLIENTS = {"librdkafka": librdkafka, "kafka-python": kafka_python, "aiokafka": aio_kafka}


IMPOSSIBLE = {
    ("aiokafka", "sets"): "it writes batches only, whatever the version",
    ("sets", "zstd"): "message sets never carried it",
}
CASES = [
    (client, era, codec)
    for client in CLIENTS
    for era in ERAS
    for codec in CODECS
    if (client, era) not in IMPOSSIBLE and (era, codec) not in IMPOSSIBLE
]


@pytest.mark.parametrize(("client", "era", "codec"), CASES)
def test_client_reads_what_it_sent(client, era, codec):
    records = samples()
    with ScriptedBroker(TOPIC, ERAS[era]) as broker:
        received = CLIENTS[client](broker, records, codec, era)
    assert broker.problems == []
    assert received == records
    log = b"".join(batch.buffer for batch in broker.batches)
    stored = [record for batch in split(log) for record in iterate(batch)]
    assert [Sent(r.key, r.value, r.timestamp_ms) for r in stored] == records
    codecs = {batch.codec for batch in broker.batches}
    assert Codec[codec.upper()] in codecs
    # A batch that compression would not shrink is sent uncompressed.
    assert codecs <= {Codec.NONE, Codec[codec.upper()]}
