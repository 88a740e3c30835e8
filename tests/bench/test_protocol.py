"""What a broker pays per request: decoding requests and encoding answers, beside other codecs."""

import io

import pytest
from kafka.protocol.consumer.fetch import FetchResponse as KafkaPythonFetchResponse
from kafka.protocol.producer.produce import ProduceRequest as KafkaPythonProduceRequest
from kafka.protocol.producer.produce import ProduceResponse as KafkaPythonProduceResponse
from kio.schema.fetch.v12.response import FetchResponse as KioFetchResponse
from kio.schema.produce.v9.request import ProduceRequest as KioProduceRequest
from kio.schema.produce.v9.response import ProduceResponse as KioProduceResponse
from kio.serial import entity_reader, entity_writer

from kafscale.protocol.messages.fetch import FETCH, FetchedPartition, FetchedTopic, FetchResponse
from kafscale.protocol.messages.metadata import (
    METADATA,
    Broker,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProducedPartition,
    ProducedTopic,
    ProduceRequest,
    ProduceResponse,
    TopicToProduce,
)

pytestmark = pytest.mark.bench


def names(count: int) -> list[str]:
    return [f"topic-{number}" for number in range(count)]


def produce_request(topics: int, partitions: int, size_bytes: int) -> ProduceRequest:
    records = memoryview(bytes(size_bytes))
    return ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topics=[
            TopicToProduce(
                name, partitions=[PartitionToProduce(i, records) for i in range(partitions)]
            )
            for name in names(topics)
        ],
    )


def produce_response(topics: int, partitions: int) -> ProduceResponse:
    return ProduceResponse(
        topics=[
            ProducedTopic(
                name, partitions=[ProducedPartition(i, 0, 123_456 + i) for i in range(partitions)]
            )
            for name in names(topics)
        ]
    )


def fetch_response(topics: int, partitions: int, size_bytes: int) -> FetchResponse:
    records = [memoryview(bytes(size_bytes))]
    return FetchResponse(
        topics=[
            FetchedTopic(
                name,
                partitions=[
                    FetchedPartition(i, high_watermark=9, last_stable_offset=9, records=records)
                    for i in range(partitions)
                ],
            )
            for name in names(topics)
        ]
    )


def encoders(ours, version, message, kio_class, kafka_python_class):
    """The same message as each contestant holds it, ready to be encoded."""
    codec = ours.response_codec(version)
    encoded = codec.encode_bytes(message)
    kio_message, _ = entity_reader(kio_class)(encoded, 0)
    write = entity_writer(kio_class)
    theirs = kafka_python_class.decode(encoded, version=version)
    theirs._header = None

    def kio() -> bytes:
        buffer = io.BytesIO()
        write(buffer, kio_message)
        return buffer.getvalue()

    candidates = {
        "kafscale": lambda: codec.encode(message),
        "kafscale, joined": lambda: codec.encode_bytes(message),
        "kio": kio,
        "kafka-python": lambda: theirs.encode(version=version),
    }
    assert kio() == encoded == bytes(candidates["kafka-python"]())
    return candidates


def named(what: str, candidates):
    return {f"{what}: {name}": function for name, function in candidates.items()}


def test_encoding_a_produce_response(bench):
    what = "encode ProduceResponse v9, 10 x 10"
    candidates = encoders(
        PRODUCE, 9, produce_response(10, 10), KioProduceResponse, KafkaPythonProduceResponse
    )
    seconds = bench.compare(named(what, candidates))
    assert seconds[f"{what}: kio"] >= 5 * seconds[f"{what}: kafscale, joined"]
    assert seconds[f"{what}: kafka-python"] >= 2 * seconds[f"{what}: kafscale, joined"]


def test_encoding_a_fetch_response(bench):
    what = "encode FetchResponse v12, 10 x 10 x 10 kB"
    candidates = encoders(
        FETCH, 12, fetch_response(10, 10, 10_000), KioFetchResponse, KafkaPythonFetchResponse
    )
    seconds = bench.compare(named(what, candidates))
    assert seconds[f"{what}: kio"] >= 5 * seconds[f"{what}: kafscale, joined"]
    assert seconds[f"{what}: kafka-python"] >= 2 * seconds[f"{what}: kafscale, joined"]


@pytest.mark.parametrize(
    ("topics", "partitions", "size_bytes"), [(1, 1, 1024), (1, 1, 100 * 1024), (10, 10, 1024)]
)
def test_decoding_a_produce_request(bench, topics, partitions, size_bytes):
    codec = PRODUCE.request_codec(9)
    frame = bytearray(codec.encode_bytes(produce_request(topics, partitions, size_bytes)))
    view, whole = memoryview(frame), bytes(frame)
    read = entity_reader(KioProduceRequest)
    what = f"decode ProduceRequest v9, {topics} x {partitions} x {size_bytes // 1024} KiB"
    candidates = {
        "kafscale": lambda: codec.decode_at(view, 0),
        "kio": lambda: read(whole, 0),
        "kafka-python": lambda: KafkaPythonProduceRequest.decode(whole, version=9),
    }
    seconds = bench.compare(named(what, candidates))
    assert seconds[f"{what}: kafka-python"] >= 1.5 * seconds[f"{what}: kafscale"]


def test_records_of_a_large_frame_are_not_copied(bench):
    codec = PRODUCE.request_codec(9)
    small, large = (
        memoryview(bytearray(codec.encode_bytes(produce_request(1, 1, size_bytes))))
        for size_bytes in (1024, 100 * 1024)
    )
    request, _ = codec.decode_at(large, 0)
    records = request.topics[0].partitions[0].records
    assert records is not None
    assert records.obj is large.obj
    seconds = bench.compare(
        {
            "decode a produce frame of 1 KiB": lambda: codec.decode_at(small, 0),
            "decode a produce frame of 100 KiB": lambda: codec.decode_at(large, 0),
        }
    )
    per_frame = list(seconds.values())
    assert per_frame[1] < 1.5 * per_frame[0]


def test_a_whole_metadata_response(bench):
    """The largest answer that clients ask for often: 50 topics of 12 partitions."""
    topics = [
        TopicMetadata(
            name=name,
            partitions=[
                PartitionMetadata(index=i, leader_id=1, replicas=[1], in_sync_replicas=[1])
                for i in range(12)
            ],
        )
        for name in names(50)
    ]
    message = MetadataResponse(brokers=[Broker(1, "broker-1", 9092)], topics=topics)
    codec = METADATA.response_codec(12)
    seconds = bench.measure("encode MetadataResponse v12, 50 x 12", lambda: codec.encode(message))
    assert seconds < 0.05
