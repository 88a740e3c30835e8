"""A connection with a fake transport; the test is the broker."""

import asyncio

import pytest

from kafscale.client.connection import Connection
from kafscale.client.errors import UnreachableError
from kafscale.errors import UnknownApiError
from kafscale.net.address import Address
from kafscale.protocol.frame import FrameReader, frame
from kafscale.protocol.header import decode_request_header, encode_response_header
from kafscale.protocol.messages.api_versions import (
    API_VERSIONS,
    ApiVersionRange,
    ApiVersionsResponse,
)
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, MetadataResponse
from kafscale.protocol.messages.produce import PRODUCE

SUPPORTED = [ApiVersionRange(API_VERSIONS.key, 0, 2), ApiVersionRange(METADATA.key, 1, 99)]


class Wire(asyncio.Transport):
    """Records requests, and whether the connection was closed."""

    def __init__(self):
        super().__init__()
        self.requests = []
        self.closed = False
        self._reader = FrameReader()

    def writelines(self, list_of_data):
        self.requests += self._reader.feed(b"".join(list_of_data))

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed


class Broker:
    """The broker side: reads requests and sends responses."""

    def __init__(self):
        self.wire = Wire()
        self.connection = Connection(Address("broker", 9092))
        self.connection.connection_made(self.wire)

    async def request(self):
        await asyncio.sleep(0)  # Let the client write its request.
        header, _ = decode_request_header(self.wire.requests.pop(0), 1)
        return header

    def respond(self, header, api, version, response):
        head = encode_response_header(header.correlation_id, api.response_header_version(version))
        self.send(b"".join(frame(head, api.response_codec(version).encode(response))))

    def send(self, data):
        while data:
            buffer = self.connection.get_buffer(-1)
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            self.connection.buffer_updated(count)
            data = data[count:]

    async def negotiate(self):
        async with asyncio.TaskGroup() as group:
            group.create_task(self.connection._negotiate())
            header = await self.request()
            self.respond(
                header, API_VERSIONS, header.api_version, ApiVersionsResponse(apis=SUPPORTED)
            )


def test_highest_common_version_is_used():
    async def scenario():
        broker = Broker()
        await broker.negotiate()
        response = asyncio.ensure_future(broker.connection.ask(METADATA, MetadataRequest()))
        header = await broker.request()
        assert (header.api_key, header.api_version) == (METADATA.key, METADATA.version_max)
        broker.respond(header, METADATA, header.api_version, MetadataResponse(cluster_id="it"))
        assert (await response).cluster_id == "it"

    asyncio.run(scenario())


def test_unsupported_api_is_not_sent():
    async def scenario():
        broker = Broker()
        await broker.negotiate()
        assert broker.connection.serves(METADATA)
        assert not broker.connection.serves(PRODUCE)
        with pytest.raises(UnknownApiError, match="broker:9092 does not serve Produce"):
            await broker.connection.ask(PRODUCE, PRODUCE.request())
        assert broker.wire.requests == []

    asyncio.run(scenario())


def test_negotiation_falls_back_to_version_0():
    """KIP-511: the response is in v0, with an error and the supported versions."""

    async def scenario():
        broker = Broker()
        negotiating = asyncio.ensure_future(broker.connection._negotiate())
        header = await broker.request()
        broker.respond(header, API_VERSIONS, 0, ApiVersionsResponse(error_code=35, apis=SUPPORTED))
        await negotiating
        assert broker.connection.serves(METADATA)

    asyncio.run(scenario())


def test_responses_are_matched_by_correlation_id():
    async def scenario():
        broker = Broker()
        await broker.negotiate()
        responses = [
            asyncio.ensure_future(broker.connection.ask(METADATA, MetadataRequest()))
            for _ in range(2)
        ]
        headers = [await broker.request() for _ in responses]
        for name, header in zip("ba", reversed(headers), strict=True):
            response = MetadataResponse(cluster_id=name)
            broker.respond(header, METADATA, header.api_version, response)
        assert [(await each).cluster_id for each in responses] == ["a", "b"]

    asyncio.run(scenario())


def test_lost_connection_fails_pending_requests():
    async def scenario():
        broker = Broker()
        await broker.negotiate()
        response = asyncio.ensure_future(broker.connection.ask(METADATA, MetadataRequest()))
        await broker.request()
        broker.connection.connection_lost(ConnectionResetError("reset by peer"))
        with pytest.raises(UnreachableError, match="broker:9092 closed the connection"):
            await response
        assert not broker.connection.is_open
        with pytest.raises(UnreachableError, match="is closed"):
            await broker.connection.ask(METADATA, MetadataRequest())

    asyncio.run(scenario())


def test_server_of_another_protocol_is_rejected():
    async def scenario():
        broker = Broker()
        negotiating = asyncio.ensure_future(broker.connection._negotiate())
        await broker.request()
        broker.send(b"HTTP/1.1 400 Bad Request\r\n")
        with pytest.raises(UnreachableError, match="broker:9092 does not use the Kafka protocol"):
            await negotiating
        assert broker.wire.closed

    asyncio.run(scenario())


def test_send_without_response_waits_while_the_buffer_is_full():
    async def scenario():
        broker = Broker()
        await broker.negotiate()
        broker.connection.pause_writing()
        sending = asyncio.ensure_future(
            broker.connection.send_without_response(METADATA, MetadataRequest())
        )
        await asyncio.sleep(0)
        assert broker.wire.requests == []
        broker.connection.resume_writing()
        await sending
        assert len(broker.wire.requests) == 1

    asyncio.run(scenario())
