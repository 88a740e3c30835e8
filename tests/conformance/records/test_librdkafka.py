"""Compares record batches with librdkafka (confluent-kafka), in both directions.

Batches go through librdkafka's mock cluster; message sets through a scripted broker with only old
API versions, because the mock cluster does not support them.
"""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer, Message, Producer, TopicPartition

from conformance.clients.scripted_broker import ScriptedBroker
from conformance.records import wire
from conformance.records.samples import SAMPLES, without_headers
from kafscale.records import (
    BatchView,
    Codec,
    Header,
    Record,
    build,
    iterate,
    recompress,
    split,
    up_convert,
)
from kafscale.records.message_set import FRAME_MAGIC, fix_header_checksum

QUIET = {"log_level": 0}
OLD = {"Metadata": 0, "FindCoordinator": 0, "ApiVersions": 0}
VERSIONS_OF_MAGIC = {0: OLD | {"Produce": 1, "Fetch": 1}, 1: OLD | {"Produce": 2, "Fetch": 2}}
"""The newest API versions for each magic; a client that sees no newer ones uses it."""

every_codec = pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)
every_legacy_codec = pytest.mark.parametrize(
    "codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4], ids=lambda codec: codec.name
)
every_magic = pytest.mark.parametrize("magic", [0, 1])
SHRINKING_BYTES_MIN = 512
"""Smaller batches of these samples may not shrink when they are compressed."""
every_sample = pytest.mark.parametrize("records", SAMPLES.values(), ids=SAMPLES)


@pytest.fixture(scope="module")
def mock_port() -> Iterator[int]:
    """The port of a mock cluster, which exists as long as its client."""
    client = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": ""} | QUIET)
    (broker,) = client.list_topics(timeout=10).brokers.values()
    yield broker.port
    client.purge()
    client.flush(5)


@pytest.fixture
def topic() -> str:
    return f"topic-{uuid.uuid4()}"


def produce(port: int, topic: str, records: list[Record], **settings: object) -> None:
    failures = []
    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "linger.ms": 5_000,  # That is, until `flush`.
            "message.max.bytes": 10_000_000,
            "message.timeout.ms": 15_000,
        }
        | QUIET
        | settings
    )
    for record in records:
        producer.produce(
            topic,
            partition=0,
            key=record.key,
            value=record.value,
            headers=[(header.key, header.value) for header in record.headers],
            timestamp=record.timestamp_ms,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(15) == 0
    assert failures == []


def fetch(port: int, topic: str, count: int) -> Iterator[BatchView]:
    """The batches of a topic up to an offset; the mock cluster returns one at a time."""
    offset = 0
    while offset < count:
        for batch in split(wire.fetch(port, topic, offset)):
            yield batch
            offset = batch.next_offset


def consume(port: int, topic: str, count: int, **settings: object) -> list[Record]:
    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "group.id": "judge",
            "enable.auto.commit": False,
            "check.crcs": True,
        }
        | QUIET
        | settings
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        messages = consumer.consume(count, timeout=15)
    finally:
        consumer.close()
    assert [message.error() for message in messages] == [None] * count
    return [record_of(message) for message in messages]


def codecs_for(batch: BatchView, codec: Codec) -> set[Codec]:
    """The codecs that librdkafka may use: a batch too small to shrink is not compressed.

    librdkafka decides how many records share a batch; it may be a few on a slow machine.
    """
    return {codec, Codec.NONE} if len(batch) < SHRINKING_BYTES_MIN else {codec}


def record_of(message: Message) -> Record:
    kind, timestamp_ms = message.timestamp()
    return Record(
        message.offset(),
        timestamp_ms if kind == TIMESTAMP_CREATE_TIME else -1,
        message.key(),
        message.value(),
        tuple(Header(key, value) for key, value in message.headers() or ()),
    )


@every_sample
@every_codec
def test_librdkafka_batches_are_valid_and_read(
    mock_port: int, topic: str, codec: Codec, records: list[Record]
) -> None:
    produce(mock_port, topic, records, **{"compression.codec": codec.name.lower()})
    read = []
    for batch in fetch(mock_port, topic, len(records)):
        batch.validate(size_bytes_max=10_000_000)
        assert batch.codec in codecs_for(batch, codec)
        read += iterate(batch)
    assert read == records


def test_librdkafka_snappy_without_framing_is_read(mock_port: int, topic: str) -> None:
    produce(mock_port, topic, SAMPLES["many"], **{"compression.codec": "snappy"})
    batches = list(fetch(mock_port, topic, len(SAMPLES["many"])))
    compressed = [batch for batch in batches if batch.codec is Codec.SNAPPY]
    assert compressed
    for batch in compressed:
        assert bytes(batch.payload[1:7]) != b"SNAPPY"
        assert next(iterate(batch)) == SAMPLES["many"][batch.base_offset]


def test_librdkafka_idempotent_batches_have_sequences(mock_port: int, topic: str) -> None:
    produce(mock_port, topic, SAMPLES["mixed"], **{"enable.idempotence": True})
    batches = list(fetch(mock_port, topic, len(SAMPLES["mixed"])))
    for batch in batches:
        batch.validate()
        assert batch.producer_id >= 0
        assert batch.producer_epoch == 0
        assert batch.base_sequence == batch.base_offset
    assert batches[-1].last_sequence == len(SAMPLES["mixed"]) - 1


@every_sample
@every_codec
def test_librdkafka_reads_our_batches(
    mock_port: int, topic: str, codec: Codec, records: list[Record]
) -> None:
    create(mock_port, topic)
    wire.produce(mock_port, topic, bytes(build(records, codec=codec)))
    assert consume(mock_port, topic, len(records)) == records


@every_codec
def test_librdkafka_reads_batches_that_we_recompressed(
    mock_port: int, topic: str, codec: Codec
) -> None:
    records = SAMPLES["many"]
    produce(mock_port, topic, records, **{"compression.codec": "zstd"})
    again = f"{topic}-again"
    create(mock_port, again)
    for batch in fetch(mock_port, topic, len(records)):
        wire.produce(mock_port, again, bytes(recompress(batch, codec)))
    assert consume(mock_port, again, len(records)) == records


def create(port: int, topic: str) -> None:
    """Request metadata of a topic, which creates it on the mock cluster."""
    client = Producer({"bootstrap.servers": f"127.0.0.1:{port}"} | QUIET)
    assert client.list_topics(topic, timeout=10).topics[topic].error is None


# --- message sets ---------------------------------------------------------------------------------


@every_sample
@every_magic
@every_legacy_codec
def test_librdkafka_message_sets_become_valid_batches(
    topic: str, codec: Codec, magic: int, records: list[Record]
) -> None:
    expected = without_headers(records, timestamps=magic == 1)
    settings = {"compression.codec": codec.name.lower(), "enable.idempotence": False}
    with ScriptedBroker(topic, VERSIONS_OF_MAGIC[magic]) as broker:
        produce(broker.port, topic, without_headers(records), **settings)
        assert {field[16] for field in broker.produced} == {magic}
        read = []
        for field in broker.produced:
            batch = BatchView(up_convert(field))
            batch.validate()
            batch.stamp(len(read), 0)
            assert batch.codec in codecs_for(batch, codec)
            read += iterate(batch)
    assert read == expected


def test_librdkafka_lz4_of_magic_0_has_the_wrong_checksum_and_is_read(topic: str) -> None:
    """KAFKA-3160, from a current client that talks to an old broker."""
    settings = {"compression.codec": "lz4", "enable.idempotence": False}
    with ScriptedBroker(topic, VERSIONS_OF_MAGIC[0]) as broker:
        produce(broker.port, topic, without_headers(SAMPLES["many"]), **settings)
    field = broker.produced[0]
    frame = field[field.index(FRAME_MAGIC) :]
    assert fix_header_checksum(frame) != frame
    assert BatchView(up_convert(field)).codec is Codec.LZ4


@every_sample
@every_magic
def test_librdkafka_reads_our_message_sets(topic: str, magic: int, records: list[Record]) -> None:
    with ScriptedBroker(topic, VERSIONS_OF_MAGIC[magic]) as broker:
        broker.batches = [BatchView(build(records, codec=Codec.ZSTD))]
        read = consume(broker.port, topic, len(records))
    assert broker.problems == []
    assert read == without_headers(records, timestamps=magic == 1)
