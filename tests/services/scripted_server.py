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

Answer = str | None | Callable[[str, bytes], bytes]
"""One answer to everything, or none ever, or what is made of a request's head and its body."""


class ScriptedServer:
    """Where it is, and the requests that it got."""

    def __init__(self, answer: Answer, *, resets: bool) -> None:
        self.answer = answer
        self.requests: list[str] = []
        """Their first lines and headers."""
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
                writer.write(self._answer_to(head.decode(), body))
                await writer.drain()
                if self._resets:
                    _reset(writer)
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass

    def _answer_to(self, head: str, body: bytes) -> bytes:
        if callable(self.answer):
            return self.answer(head, body)
        return (self.answer or "").encode()

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


@asynccontextmanager
async def scripted_server(answer: Answer, *, resets: bool = False) -> AsyncIterator[ScriptedServer]:
    """A server that may break the connection off after its first answer."""
    scripted = ScriptedServer(answer, resets=resets)
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
    scripted.port = server.sockets[0].getsockname()[1]
    try:
        yield scripted
    finally:
        server.close()
        scripted.close()


def response(status: int, code: str = "", *, body: str = "") -> str:
    """An answer, with an error in its body as S3 writes it."""
    if code:
        body = f"<Error><Code>{code}</Code><Message>because</Message></Error>"
    return f"HTTP/1.1 {status} Reason\r\nContent-Length: {len(body)}\r\n\r\n{body}"


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection as a crash does."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
