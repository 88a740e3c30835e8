"""What a broker does with connections and frames that no well-behaved client sends."""

import struct
import threading
import time
from pathlib import Path

import pytest

from kafscale.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafscale.protocol.messages.fetch import FETCH, FetchRequest, PartitionToFetch, TopicToFetch
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest
from kafscale.protocol.messages.produce import PRODUCE
from services.wire import Wire, batch_of, produce_request

UNSUPPORTED_VERSION = 35


def memory_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(
        int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS")
    )


def test_pipelined_requests_are_answered_in_their_order(wire, topic):
    wire.create(topic)
    waiting = FetchRequest(
        max_wait_ms=300,
        min_bytes=1,
        topics=[TopicToFetch(topic, partitions=[PartitionToFetch(max_bytes=1 << 20)])],
    )
    sent = [
        wire.send(FETCH, 11, waiting),
        wire.send(METADATA, 9, MetadataRequest(topics=[])),
        wire.send(PRODUCE, 9, produce_request(topic, batch_of([b"value"]))),
        wire.send(API_VERSIONS, 3, ApiVersionsRequest()),
    ]
    apis = [(FETCH, 11), (METADATA, 9), (PRODUCE, 9), (API_VERSIONS, 3)]
    assert [wire.receive(api, version)[0] for api, version in apis] == sent


def test_a_version_of_api_versions_from_the_future_is_answered_in_the_first_one(wire):
    wire.socket.sendall(struct.pack(">ihhih", 10, API_VERSIONS.key, 99, 7, -1))
    number, answer = wire.receive(API_VERSIONS, 0)
    assert (number, answer.error_code) == (7, UNSUPPORTED_VERSION)
    assert {each.key for each in answer.apis} >= {PRODUCE.key, FETCH.key, API_VERSIONS.key}
    assert wire.call(API_VERSIONS, 3, ApiVersionsRequest("wire", "1")).error_code == 0


@pytest.mark.parametrize(("key", "version"), [(999, 0), (PRODUCE.key, 99), (-1, 0)])
def test_what_nobody_speaks_ends_the_connection_and_no_other(broker, wire, key, version):
    with Wire(broker.port) as stranger:
        stranger.socket.sendall(struct.pack(">ihhih", 10, key, version, 7, -1))
        assert stranger.is_hung_up()
    assert wire.call(API_VERSIONS, 3, ApiVersionsRequest("wire", "1")).error_code == 0


@pytest.mark.parametrize("length", [2**31 - 1, -1, -(2**31)])
def test_an_absurd_length_allocates_nothing(broker, length):
    before_bytes = memory_bytes(broker.pid)
    with Wire(broker.port) as stranger:
        stranger.socket.sendall(struct.pack(">i", length) + bytes(64))
        assert stranger.is_hung_up()
    assert memory_bytes(broker.pid) - before_bytes < 20 << 20


def test_half_a_request_holds_up_nobody(broker, wire):
    with Wire(broker.port) as sleeper:
        sleeper.socket.sendall(struct.pack(">ihh", 1000, PRODUCE.key, 9))
        assert wire.call(API_VERSIONS, 3, ApiVersionsRequest("wire", "1")).error_code == 0


def test_a_connection_that_never_asks_is_closed(start_broker):
    broker = start_broker(network_connection_timeout="200ms")
    with Wire(broker.port) as silent:
        silent.socket.sendall(b"\0\0")
        assert silent.is_hung_up()


def test_http_is_not_mistaken_for_kafka(broker):
    with Wire(broker.port) as stranger:
        stranger.socket.sendall(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n")
        assert stranger.is_hung_up()


def test_a_reader_that_takes_nothing_costs_little_and_loses_nothing(start_broker):
    broker = start_broker()
    with Wire(broker.port) as wire, Wire(broker.port, receive_buffer_bytes=4096) as slow:
        wire.create("topic")
        for _ in range(40):
            assert wire.produce("topic", batch_of([bytes(900_000)])).error_code == 0
        before_bytes = memory_bytes(broker.pid)
        request = FetchRequest(
            topics=[TopicToFetch("topic", partitions=[PartitionToFetch(max_bytes=1 << 26)])]
        )
        sent = [slow.send(FETCH, 11, request) for _ in range(50)]
        time.sleep(0.5)
        # Fifty answers of 36 MB are asked for; the broker prepares no more than a few of them.
        assert memory_bytes(broker.pid) - before_bytes < 200 << 20
        assert wire.produce("topic", batch_of([b"others go on"])).error_code == 0
        for number in sent[:3]:
            answered, answer = slow.receive(FETCH, 11)
            assert answered == number
            assert sum(map(len, answer.topics[0].partitions[0].records)) > 30_000_000


def test_a_client_that_leaves_in_the_middle_harms_nobody(broker, wire, topic):
    wire.create(topic)

    def come_and_go() -> None:
        for _ in range(50):
            with Wire(broker.port) as visitor:
                visitor.send(PRODUCE, 9, produce_request(topic, batch_of([b"value"])))

    visitors = [threading.Thread(target=come_and_go) for _ in range(4)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    offsets = [record.offset for record in wire.read(topic)]
    assert offsets == list(range(len(offsets)))
    assert wire.produce(topic, batch_of([b"last"])).base_offset >= len(offsets)


def test_bytes_behind_a_request_are_ignored_as_kafka_does(wire):
    """What librdkafka sends to see all topics: null as an array of old, in a version of new."""
    header = struct.pack(">hhih", METADATA.key, 12, 7, -1) + b"\0"
    body = bytes.fromhex("00 00 00 00 01 00 00")
    wire.socket.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
    number, answer = wire.receive(METADATA, 12)
    assert number == 7
    assert len(answer.brokers) == 1
