"""A low-level client: it sends exactly the given requests and hides nothing.

    with Wire(port) as wire:
        answer = wire.call(METADATA, 12, MetadataRequest(topics=None))

Below it are the few requests that most tests need, with the error codes left for them to judge.
"""

import socket
import time
from collections.abc import Sequence
from typing import Any, Self

from kafscale.protocol import header as headers
from kafscale.protocol.api import Api
from kafscale.protocol.frame import FrameReader, frame
from kafscale.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreateTopicsRequest,
    TopicConfig,
    TopicToCreate,
)
from kafscale.protocol.messages.fetch import (
    FETCH,
    FetchedPartition,
    FetchRequest,
    PartitionToFetch,
    TopicToFetch,
)
from kafscale.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListedPartition,
    ListOffsetsRequest,
    PartitionToList,
    TopicToList,
)
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProducedPartition,
    ProduceRequest,
    TopicToProduce,
)
from kafscale.records import Record, build, iterate, split

BYTES_MAX = 64 * 1024 * 1024
LATEST, EARLIEST = -1, -2
ALL = -1


class Wire:
    """One connection to a broker."""

    def __init__(self, port: int, *, receive_buffer_bytes: int = 0, timeout_s: float = 10) -> None:
        self.socket = socket.socket()
        if receive_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(timeout_s)
        self.socket.connect(("127.0.0.1", port))
        self._reader = FrameReader(frame_bytes_max=2**31 - 1)
        self._frames: list[memoryview] = []
        self._last_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    # --- requests and responses ---------------------------------------------------------------

    def send(self, api: Api[Any, Any], version: int, request: Any) -> int:
        """Send a request; return its correlation id."""
        self._last_id += 1
        requested = headers.RequestHeader(api.key, version, self._last_id, "wire")
        header = headers.encode_request_header(requested, api.request_header_version(version))
        self.socket.sendall(b"".join(frame(header, api.request_codec(version).encode(request))))
        return self._last_id

    def receive(self, api: Api[Any, Any], version: int) -> tuple[int, Any]:
        """The correlation id of the next response, and the response."""
        response = self.receive_frame()
        number, position = headers.decode_response_header(
            response, api.response_header_version(version)
        )
        message, end = api.response_codec(version).decode_at(response, position)
        assert end == len(response)
        return number, message

    def call(self, api: Api[Any, Any], version: int, request: Any) -> Any:
        requested = self.send(api, version, request)
        answered, message = self.receive(api, version)
        assert answered == requested
        return message

    def receive_frame(self) -> memoryview:
        while not self._frames:
            count = self.socket.recv_into(self._reader.buffer())
            if not count:
                raise ConnectionError("the broker hung up")
            self._frames = self._reader.received(count)
        return self._frames.pop(0)

    def is_closed_by_broker(self) -> bool:
        """Whether the broker closes the connection without a response."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    # --- common requests ----------------------------------------------------------------------

    def create(self, topic: str, partitions: int = 1, **configs: object) -> None:
        """Create a topic; configs are written with underscores for dots."""
        requested = [
            TopicConfig(name.replace("_", "."), str(value)) for name, value in configs.items()
        ]
        topics = [TopicToCreate(topic, partitions, -1, configs=requested)]
        response = self.call(CREATE_TOPICS, 5, CreateTopicsRequest(topics))
        created = response.topics[0]
        assert created.error_code == 0, (created.error_code, created.error_message)

    def produce(
        self,
        topic: str,
        records: bytes | bytearray,
        *,
        partition: int = 0,
        acks: int = ALL,
        version: int = 9,
    ) -> ProducedPartition:
        request = produce_request(topic, records, partition=partition, acks=acks)
        response = self.call(PRODUCE, version, request)
        return response.topics[0].partitions[0]

    def fetch(
        self,
        topic: str,
        offset: int = 0,
        *,
        partition: int = 0,
        version: int = 11,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = BYTES_MAX,
        partition_max_bytes: int = BYTES_MAX,
    ) -> FetchedPartition:
        requested = PartitionToFetch(index=partition, offset=offset, max_bytes=partition_max_bytes)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            topics=[TopicToFetch(topic, partitions=[requested])],
        )
        response = self.call(FETCH, version, request)
        return response.topics[0].partitions[0]

    def read(self, topic: str, *, partition: int = 0, count: int | None = None) -> list[Record]:
        """Read all records of a partition, or wait for `count` of them."""
        offset = self.offset(topic, EARLIEST, partition=partition).offset
        result: list[Record] = []
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            fetched = self.fetch(topic, offset, partition=partition)
            assert fetched.error_code == 0
            new = records_of(fetched)
            result += [record for record in new if record.offset >= offset]
            if result:
                offset = result[-1].offset + 1
            is_whole = offset >= fetched.high_watermark if count is None else len(result) >= count
            if is_whole:
                return result
            if not new:
                time.sleep(0.01)
        raise TimeoutError(f"only {len(result)} records of {topic} can be read")

    def offset(self, topic: str, timestamp_ms: int, *, partition: int = 0) -> ListedPartition:
        requested = PartitionToList(index=partition, timestamp_ms=timestamp_ms)
        request = ListOffsetsRequest(-1, topics=[TopicToList(topic, [requested])])
        return self.call(LIST_OFFSETS, 7, request).topics[0].partitions[0]


def produce_request(
    topic: str, records: bytes | bytearray, *, partition: int = 0, acks: int = ALL
) -> ProduceRequest:
    batch = PartitionToProduce(index=partition, records=memoryview(records))
    return ProduceRequest(
        acks=acks, timeout_ms=10_000, topics=[TopicToProduce(topic, partitions=[batch])]
    )


def batch_of(
    values: Sequence[bytes], *, timestamp_ms: int | None = None, **kinds: Any
) -> bytearray:
    """A batch of records with these values and one timestamp, by default the current time."""
    timestamp_ms = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
    records = [
        Record(offset=index, timestamp_ms=timestamp_ms, key=None, value=value)
        for index, value in enumerate(values)
    ]
    return build(records, **kinds)


def records_of(fetched: FetchedPartition) -> list[Record]:
    """The records of a response in format 2; its last batch may be incomplete."""
    data = b"".join(fetched.records or [])
    return [record for batch in split(data, partial_ok=True) for record in iterate(batch)]
