"""A line to a broker for those who make load: it does as little as can be for each request.

It is cheap, so that benches measure the broker and not the client. Callers choose the versions.
"""

import asyncio
from typing import Any, Self

from kafscale.protocol.api import Api, Request, Response
from kafscale.protocol.frame import FrameBufferPool, FrameReader, frame
from kafscale.protocol.header import (
    CORRELATION,
    RequestHeader,
    decode_response_header,
    encode_request_header,
)

CLIENT_ID = "bench"


class BrokerConnection(asyncio.Protocol):
    """One connection, on which several requests may be on their way."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader(pool=_POOL)
        self._transport: asyncio.Transport
        self._waiting: dict[int, asyncio.Future[memoryview]] = {}
        self._last_id = 0

    @classmethod
    async def open(cls, address: str) -> Self:
        host, _, port = address.rpartition(":")
        _, connection = await asyncio.get_running_loop().create_connection(cls, host, int(port))
        return connection

    async def ask(self, api: Api[Request, Response], version: int, request: Request) -> Response:
        self._last_id += 1
        requested = RequestHeader(api.key, version, self._last_id, CLIENT_ID)
        header = encode_request_header(requested, api.request_header_version(version))
        self._transport.writelines(frame(header, api.request_codec(version).encode(request)))
        future = self._waiting[self._last_id] = self._loop.create_future()
        response = await future
        _, position = decode_response_header(response, api.response_header_version(version))
        return api.response_codec(version).decode(response[position:])

    def close(self) -> None:
        self._transport.close()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        for response in self._reader.feed(data):
            future = self._waiting.pop(CORRELATION.unpack_from(response)[0])
            if not future.done():
                future.set_result(response)

    def connection_lost(self, error: Exception | None) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error or ConnectionError("the broker hung up"))


_POOL = FrameBufferPool(kept_bytes_max=0)
