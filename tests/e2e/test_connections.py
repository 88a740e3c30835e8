"""Connections and frames that no well-behaved client sends."""

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


def test_pipelined_requests_get_responses_in_order(wire, topic):
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


def test_unsupported_api_versions_request_gets_a_version_0_response(wire):
    wire.socket.sendall(struct.pack(">ihhih", 10, API_VERSIONS.key, 99, 7, -1))
    number, response = wire.receive(API_VERSIONS, 0)
    assert (number, response.error_code) == (7, UNSUPPORTED_VERSION)
    assert {each.key for each in response.apis} >= {PRODUCE.key, FETCH.key, API_VERSIONS.key}
    assert wire.call(API_VERSIONS, 3, ApiVersionsRequest("wire", "1")).error_code == 0


@pytest.mark.parametrize(("key", "version"), [(999, 0), (PRODUCE.key, 99), (-1, 0)])
def test_unsupported_request_closes_only_its_connection(broker, wire, key, version):
    with Wire(broker.port) as connection:
        connection.socket.sendall(struct.pack(">ihhih", 10, key, version, 7, -1))
        assert connection.is_closed_by_broker()
    assert wire.call(API_VERSIONS, 3, ApiVersionsRequest("wire", "1")).error_code == 0


@pytest.mark.parametrize("length", [2**31 - 1, -1, -(2**31)])
def test_invalid_frame_length_allocates_no_memory(broker, length):
    before_bytes = memory_bytes(broker.process_id)
    with Wire(broker.port) as connection:
        connection.socket.sendall(struct.pack(">i", length) + bytes(64))
        assert connection.is_closed_by_broker()
    assert memory_bytes(broker.process_id) - before_bytes < 20 << 20


def test_incomplete_request_does_not_block_other_connections(broker, wire):
    with Wire(broker.port) as incomplete:
        incomplete.socket.sendall(struct.pack(">ihh", 1000, PRODUCE.key, 9))
        assert wire.call(API_VERSIONS, 3, ApiVersionsRequest("wire", "1")).error_code == 0


def test_connection_without_a_request_is_closed(start_broker):
    broker = start_broker(network_connection_timeout="200ms")
    with Wire(broker.port) as silent:
        silent.socket.sendall(b"\0\0")
        assert silent.is_closed_by_broker()


def test_http_request_closes_the_connection(broker):
    with Wire(broker.port) as connection:
        connection.socket.sendall(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n")
        assert connection.is_closed_by_broker()


def test_slow_reader_uses_bounded_memory_and_gets_all_responses(start_broker):
    broker = start_broker()
    with Wire(broker.port) as wire, Wire(broker.port, receive_buffer_bytes=4096) as slow:
        wire.create("topic")
        for _ in range(40):
            assert wire.produce("topic", batch_of([bytes(900_000)])).error_code == 0
        before_bytes = memory_bytes(broker.process_id)
        request = FetchRequest(
            topics=[TopicToFetch("topic", partitions=[PartitionToFetch(max_bytes=1 << 26)])]
        )
        sent = [slow.send(FETCH, 11, request) for _ in range(50)]
        time.sleep(0.5)
        # The client requests fifty responses of 36 MB; the broker prepares only a few of them.
        assert memory_bytes(broker.process_id) - before_bytes < 200 << 20
        assert wire.produce("topic", batch_of([b"others continue"])).error_code == 0
        for number in sent[:3]:
            correlation_id, response = slow.receive(FETCH, 11)
            assert correlation_id == number
            assert sum(map(len, response.topics[0].partitions[0].records)) > 30_000_000


def test_disconnect_during_a_produce_does_not_affect_others(broker, wire, topic):
    wire.create(topic)

    def connect_and_disconnect() -> None:
        for _ in range(50):
            with Wire(broker.port) as connection:
                connection.send(PRODUCE, 9, produce_request(topic, batch_of([b"value"])))

    threads = [threading.Thread(target=connect_and_disconnect) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    offsets = [record.offset for record in wire.read(topic)]
    assert offsets == list(range(len(offsets)))
    assert wire.produce(topic, batch_of([b"last"])).base_offset >= len(offsets)


def test_trailing_bytes_of_a_request_are_ignored(wire):
    """As Kafka does. librdkafka requests all topics with an old-style null array in a flexible
    version.
    """
    header = struct.pack(">hhih", METADATA.key, 12, 7, -1) + b"\0"
    body = bytes.fromhex("00 00 00 00 01 00 00")
    wire.socket.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
    number, response = wire.receive(METADATA, 12)
    assert number == 7
    assert len(response.brokers) == 1
