"""Produce and Fetch requests without a client, with unchanged records fields."""

import socket
from typing import Any

from kafscale.protocol import header as headers
from kafscale.protocol.api import Api
from kafscale.protocol.frame import FrameReader, frame
from kafscale.protocol.messages import fetch as fetching
from kafscale.protocol.messages import produce as producing

PRODUCE_VERSION = 3
FETCH_VERSION = 4
BYTES_MAX = 1 << 24


def produce(port: int, topic: str, records: bytes) -> None:
    """Produce a records field to partition 0."""
    partition = producing.PartitionToProduce(records=memoryview(records))
    request = producing.ProduceRequest(
        acks=-1, timeout_ms=5000, topics=[producing.TopicToProduce(topic, partitions=[partition])]
    )
    response = _call(port, producing.PRODUCE, PRODUCE_VERSION, request)
    assert response.topics[0].partitions[0].error_code == 0


def fetch(port: int, topic: str, offset: int = 0) -> bytes:
    """Fetch the records field of partition 0 from an offset."""
    partition = fetching.PartitionToFetch(offset=offset, max_bytes=BYTES_MAX)
    request = fetching.FetchRequest(
        max_wait_ms=1000,
        min_bytes=1,
        max_bytes=BYTES_MAX,
        topics=[fetching.TopicToFetch(topic, partitions=[partition])],
    )
    response = _call(port, fetching.FETCH, FETCH_VERSION, request)
    fetched = response.topics[0].partitions[0]
    assert fetched.error_code == 0
    assert not fetched.aborted_transactions
    return b"".join(fetched.records)


def _call(port: int, api: Api[Any, Any], version: int, request: Any) -> Any:
    requested = headers.RequestHeader(api.key, version, 1)
    header = headers.encode_request_header(requested, api.request_header_version(version))
    reader = FrameReader()
    responses: list[memoryview] = []
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"".join(frame(header, api.request_codec(version).encode(request))))
        while not responses:
            count = connection.recv_into(reader.buffer())
            assert count, "the broker closed the connection"
            responses = reader.received(count)
    (response,) = responses
    _, position = headers.decode_response_header(response, api.response_header_version(version))
    message, _ = api.response_codec(version).decode_at(response, position)
    return message
