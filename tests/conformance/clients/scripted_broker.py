"""An in-memory broker with one partition, built on `protocol` and `records`.

It lets real clients produce and consume, so that they check our bytes and we check theirs: every
request must be decodable, and encode to the bytes that the client sent.
"""

import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from kafscale.protocol import header as headers
from kafscale.protocol.api import Api
from kafscale.protocol.apis import BY_KEY, api_versions_response
from kafscale.protocol.codec.codec import Buffer
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.frame import FrameReader, frame
from kafscale.protocol.messages import (
    api_versions,
    fetch,
    find_coordinator,
    init_producer_id,
    list_offsets,
    metadata,
    produce,
)
from kafscale.records import BatchView, down_convert, single_batch, up_convert

TOPIC_ID = bytes(range(16))
BATCH_BYTES_MAX = 1_048_588
HANDLERS: dict[int, Callable[["ScriptedBroker", int, Any], Any]] = {}


def handles(api: Api[Any, Any]) -> Callable[..., Any]:
    def register(handler: Callable[["ScriptedBroker", int, Any], Any]) -> Any:
        HANDLERS[api.key] = handler
        return handler

    return register


class ScriptedBroker:
    """Listens on a free port until it is closed; `versions_max` makes it an older broker."""

    def __init__(self, topic: str, versions_max: dict[str, int] | None = None) -> None:
        self.topic = topic
        self.versions_max = versions_max or {}
        self.batches: list[BatchView] = []
        self.produced: list[bytes] = []
        """Every records field that a producer sent, unchanged."""
        self.problems: list[str] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # Closing alone would leave `accept` blocked.
        self._listener.close()

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else 0

    @property
    def served(self) -> list[Api[Any, Any]]:
        return [BY_KEY[key] for key in HANDLERS]

    def version_max(self, api: Api[Any, Any]) -> int:
        return self.versions_max.get(api.name, api.version_max)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        reader = FrameReader()
        with connection:
            try:
                while count := connection.recv_into(reader.buffer()):
                    for request in reader.received(count):
                        with self._lock:
                            response = self._respond(request)
                        connection.sendall(b"".join(response))
            except ConnectionError:
                pass
            except Exception as error:  # noqa: BLE001  The test reports it.
                self.problems.append(repr(error))

    def _respond(self, request: memoryview) -> list[Buffer]:
        key, version = headers.peek_api(request)
        api = BY_KEY[key]
        requested, position = headers.decode_request_header(
            request, api.request_header_version(version)
        )
        if version > self.version_max(api):
            assert api is api_versions.API_VERSIONS
            response = self._api_versions()
            response.error_code = ErrorCode.UNSUPPORTED_VERSION
            parts = api.response_codec(0).encode(response)
            return frame(headers.encode_response_header(requested.correlation_id, 0), parts)
        codec = api.request_codec(version)
        message, end = codec.decode_at(request, position)
        assert end == len(request), f"{api.name} v{version} has bytes left"
        assert codec.encode_bytes(message) == request[position:], f"{api.name} v{version} differs"
        response = HANDLERS[key](self, version, message)
        if response is None:
            return []
        header = headers.encode_response_header(
            requested.correlation_id, api.response_header_version(version)
        )
        return frame(header, api.response_codec(version).encode(response))

    def _api_versions(self) -> api_versions.ApiVersionsResponse:
        response = api_versions_response(self.served)
        for result in response.apis:
            result.version_max = self.version_max(BY_KEY[result.key])
        return response

    @handles(api_versions.API_VERSIONS)
    def _handle_api_versions(
        self, _version: int, _request: api_versions.ApiVersionsRequest
    ) -> api_versions.ApiVersionsResponse:
        return self._api_versions()

    @handles(metadata.METADATA)
    def _handle_metadata(
        self, _version: int, _request: metadata.MetadataRequest
    ) -> metadata.MetadataResponse:
        partition = metadata.PartitionMetadata(
            leader_id=1, leader_epoch=3, replicas=[1], in_sync_replicas=[1]
        )
        topic = metadata.TopicMetadata(name=self.topic, topic_id=TOPIC_ID, partitions=[partition])
        return metadata.MetadataResponse(
            brokers=[metadata.Broker(1, "127.0.0.1", self.port)],
            cluster_id="scripted",
            controller_id=1,
            topics=[topic],
        )

    @handles(init_producer_id.INIT_PRODUCER_ID)
    def _handle_init_producer_id(
        self, _version: int, _request: init_producer_id.InitProducerIdRequest
    ) -> init_producer_id.InitProducerIdResponse:
        return init_producer_id.InitProducerIdResponse(producer_id=7, producer_epoch=0)

    @handles(find_coordinator.FIND_COORDINATOR)
    def _handle_find_coordinator(
        self, version: int, request: find_coordinator.FindCoordinatorRequest
    ) -> find_coordinator.FindCoordinatorResponse:
        # librdkafka assumes that a broker without this API does not support lz4.
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return find_coordinator.FindCoordinatorResponse(
            error_code=code if version < 4 else 0,
            coordinators=[
                find_coordinator.Coordinator(key=key, error_code=code) for key in request.keys
            ],
        )

    @handles(produce.PRODUCE)
    def _handle_produce(
        self, version: int, request: produce.ProduceRequest
    ) -> produce.ProduceResponse | None:
        (topic,) = request.topics
        (partition,) = topic.partitions
        assert partition.records is not None
        self.produced.append(bytes(partition.records))
        assert topic.name == self.topic if version < 13 else topic.topic_id == TOPIC_ID
        records = partition.records if version >= 3 else up_convert(partition.records)
        batch = single_batch(records)
        batch.validate(size_bytes_max=BATCH_BYTES_MAX)
        batch.stamp(self.end_offset, 3)
        self.batches.append(batch)
        produced = produce.ProducedPartition(partition.index, base_offset=batch.base_offset)
        response = produce.ProducedTopic(topic.name, topic.topic_id, [produced])
        return produce.ProduceResponse(topics=[response]) if request.acks else None

    @handles(list_offsets.LIST_OFFSETS)
    def _handle_list_offsets(
        self, _version: int, request: list_offsets.ListOffsetsRequest
    ) -> list_offsets.ListOffsetsResponse:
        (topic,) = request.topics
        (requested,) = topic.partitions
        offset = 0 if requested.timestamp_ms == -2 else self.end_offset
        partition = list_offsets.ListedPartition(requested.index, offsets=[offset], offset=offset)
        return list_offsets.ListOffsetsResponse(
            topics=[list_offsets.ListedTopic(topic.name, [partition])]
        )

    @handles(fetch.FETCH)
    def _handle_fetch(self, version: int, request: fetch.FetchRequest) -> fetch.FetchResponse:
        topics = []
        for topic in request.topics:
            partitions = [self._fetched(version, requested) for requested in topic.partitions]
            topics.append(fetch.FetchedTopic(topic.name, topic.topic_id, partitions))
        if not any(partition.records for topic in topics for partition in topic.partitions):
            time.sleep(request.max_wait_ms / 10_000)  # No new records: slow down polling.
        return fetch.FetchResponse(topics=topics)

    def _fetched(self, version: int, asked: fetch.PartitionToFetch) -> fetch.FetchedPartition:
        batches = [batch for batch in self.batches if batch.last_offset >= asked.offset]
        slices = [batch.buffer for batch in batches]
        if batches and version < 4:
            magic = 0 if version < 2 else 1
            slices = [memoryview(down_convert(batches, magic, first_offset=asked.offset))]
        return fetch.FetchedPartition(
            asked.index,
            high_watermark=self.end_offset,
            last_stable_offset=self.end_offset,
            log_start_offset=0,
            records=slices,
        )
