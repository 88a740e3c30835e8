"""A connection on a transport that keeps what is sent, so that the test can be the broker."""

import asyncio

import pytest

from kafscale.client.connection import Connection
from kafscale.client.errors import UnreachableError
from kafscale.errors import UnknownApiError
from kafscale.net.host_port import Address
from kafscale.protocol.frame import FrameReader, frame
from kafscale.protocol.header import decode_request_header, encode_response_header
from kafscale.protocol.messages.api_versions import (
    API_VERSIONS,
    ApiVersionRange,
    ApiVersionsResponse,
)
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, MetadataResponse
from kafscale.protocol.messages.produce import PRODUCE

KNOWN = [ApiVersionRange(API_VERSIONS.key, 0, 2), ApiVersionRange(METADATA.key, 1, 99)]


class Wire(asyncio.Transport):
    """Keeps the requests that are sent, and whether the connection was closed."""

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
    """The other end: answers requests one by one."""

    def __init__(self):
        self.wire = Wire()
        self.connection = Connection(Address("broker", 9092))
        self.connection.connection_made(self.wire)

    async def request(self):
        await asyncio.sleep(0)  # Whoever was told to ask begins to.
        header, _ = decode_request_header(self.wire.requests.pop(0), 1)
        return header

    def answer(self, header, api, version, response):
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
            self.answer(header, API_VERSIONS, header.api_version, ApiVersionsResponse(apis=KNOWN))


def test_the_highest_version_that_both_know_is_spoken():
    async def story():
        broker = Broker()
        await broker.negotiate()
        asked = asyncio.ensure_future(broker.connection.ask(METADATA, MetadataRequest()))
        header = await broker.request()
        assert (header.api_key, header.api_version) == (METADATA.key, METADATA.version_max)
        broker.answer(header, METADATA, header.api_version, MetadataResponse(cluster_id="it"))
        assert (await asked).cluster_id == "it"

    asyncio.run(story())


def test_an_api_that_the_broker_does_not_serve_is_not_sent():
    async def story():
        broker = Broker()
        await broker.negotiate()
        assert broker.connection.serves(METADATA)
        assert not broker.connection.serves(PRODUCE)
        with pytest.raises(UnknownApiError, match="broker:9092 does not serve Produce"):
            await broker.connection.ask(PRODUCE, PRODUCE.request())
        assert broker.wire.requests == []

    asyncio.run(story())


def test_a_broker_that_does_not_know_our_version_is_understood():
    """KIP-511: the answer comes in v0, with an error and the versions that are known."""

    async def story():
        broker = Broker()
        negotiating = asyncio.ensure_future(broker.connection._negotiate())
        header = await broker.request()
        broker.answer(header, API_VERSIONS, 0, ApiVersionsResponse(error_code=35, apis=KNOWN))
        await negotiating
        assert broker.connection.serves(METADATA)

    asyncio.run(story())


def test_answers_find_their_requests_in_any_order():
    async def story():
        broker = Broker()
        await broker.negotiate()
        asked = [
            asyncio.ensure_future(broker.connection.ask(METADATA, MetadataRequest()))
            for _ in range(2)
        ]
        headers = [await broker.request() for _ in asked]
        for name, header in zip("ba", reversed(headers), strict=True):
            response = MetadataResponse(cluster_id=name)
            broker.answer(header, METADATA, header.api_version, response)
        assert [(await each).cluster_id for each in asked] == ["a", "b"]

    asyncio.run(story())


def test_when_the_connection_is_lost_all_that_wait_are_told():
    async def story():
        broker = Broker()
        await broker.negotiate()
        asked = asyncio.ensure_future(broker.connection.ask(METADATA, MetadataRequest()))
        await broker.request()
        broker.connection.connection_lost(ConnectionResetError("reset by peer"))
        with pytest.raises(UnreachableError, match="broker:9092 closed the connection"):
            await asked
        assert not broker.connection.is_open
        with pytest.raises(UnreachableError, match="is closed"):
            await broker.connection.ask(METADATA, MetadataRequest())

    asyncio.run(story())


def test_a_server_that_speaks_another_protocol_is_left():
    async def story():
        broker = Broker()
        negotiating = asyncio.ensure_future(broker.connection._negotiate())
        await broker.request()
        broker.send(b"HTTP/1.1 400 Bad Request\r\n")
        with pytest.raises(UnreachableError, match="broker:9092 does not speak Kafka"):
            await negotiating
        assert broker.wire.closed

    asyncio.run(story())


def test_who_writes_without_an_answer_waits_for_room():
    async def story():
        broker = Broker()
        await broker.negotiate()
        broker.connection.pause_writing()
        told = asyncio.ensure_future(broker.connection.tell(METADATA, MetadataRequest()))
        await asyncio.sleep(0)
        assert broker.wire.requests == []
        broker.connection.resume_writing()
        await told
        assert len(broker.wire.requests) == 1

    asyncio.run(story())
