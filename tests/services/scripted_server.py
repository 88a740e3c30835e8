"""An HTTP server with scripted responses, whatever the request.

async with scripted_server(response(503, "SlowDown")) as server:
    store = S3ObjectStore(replace(bucket, endpoint=server.url))
    ...
    assert len(server.requests) == 1
"""

import asyncio
import re
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

Response = str | None | Callable[[str, bytes], bytes]
"""The response to every request; None for no response; or a function of head and body."""


class ScriptedServer:
    """The address of the server, and the requests that it received."""

    def __init__(self, scripted: Response, *, resets: bool) -> None:
        self.response = scripted
        self.requests: list[str] = []
        """First lines and headers."""
        self.port = 0
        self._resets = resets
        self._connections: list[asyncio.StreamWriter] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.append(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.requests.append(head.decode())
                length = re.search(rb"content-length: (\d+)", head.lower())
                body = await reader.readexactly(int(length[1]) if length else 0)
                writer.write(self._response_to(head.decode(), body))
                await writer.drain()
                if self._resets:
                    _reset(writer)
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass

    def _response_to(self, head: str, body: bytes) -> bytes:
        if callable(self.response):
            return self.response(head, body)
        return (self.response or "").encode()

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


@asynccontextmanager
async def scripted_server(
    scripted: Response, *, resets: bool = False
) -> AsyncIterator[ScriptedServer]:
    """Run a server; with `resets`, it resets the connection after its first response."""
    running = ScriptedServer(scripted, resets=resets)
    server = await asyncio.start_server(running.serve, "127.0.0.1", 0)
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()
        running.close()


def response(status: int, code: str = "", *, body: str = "") -> str:
    """A response, with the error body of S3 if there is a code."""
    if code:
        body = f"<Error><Code>{code}</Code><Message>because</Message></Error>"
    return f"HTTP/1.1 {status} Reason\r\nContent-Length: {len(body)}\r\n\r\n{body}"


def _reset(writer: asyncio.StreamWriter) -> None:
    """Reset a connection, as after a crash."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
