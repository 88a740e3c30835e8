"""A reception with a real socket, and callers: what tests of arriving share."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import uvloop

from kafscale.broker.network.acceptor import Reception
from kafscale.broker.network.connection import Connection, Lobby
from kafscale.broker.network.connection_quotas import Door
from kafscale.broker.network.listener_config import Listener, Protocol
from kafscale.broker.requests.route import route
from kafscale.broker.security.audit import Audit
from kafscale.config.sections.security import Tls
from kafscale.observability.metrics.counters import ConnectionCounters, SecurityCounters
from kafscale.protocol.messages.heartbeat import HEARTBEAT
from kafscale.security.tls.context import ListenerTls
from services.certificates import Certificates
from unit.broker.harness import LIMITS, beat, dispatcher, heartbeat

HOST = "127.0.0.1"
SECURE = Listener("SECURE", Protocol.SSL)
PATIENCE_S = 10

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

on_both_loops = pytest.mark.parametrize(
    "loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


async def until(condition: Callable[[], object]) -> None:
    """Wait for what only the other side of a socket knows of."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - there is nothing that would tell.
            await asyncio.sleep(0.002)


class Desk:
    """One reception, and what it was made of."""

    def __init__(self, door: Door, tls: ListenerTls | None = None, **options: Any) -> None:
        """`limits`, `delay_ms` and `wrap`, which may put something round the socket."""
        self.door = door
        self.traffic = ConnectionCounters()
        self.connections: list[Connection] = []
        listening = socket.create_server((HOST, 0), backlog=100)
        listening.setblocking(False)
        self.port = listening.getsockname()[1]
        lobby = Lobby(
            dispatcher(route(HEARTBEAT, beat)),
            options.get("limits", LIMITS),
            opened=self._opened,
            closed=self.connections.remove,
            listener=SECURE if tls else None,
            tls=tls,
            audit=Audit(SecurityCounters(), lambda: 0),
        )
        wrap = options.get("wrap", lambda wrapped: wrapped)
        delay_ms = options.get("delay_ms", 0)
        self.listening = wrap(listening)
        self.reception = Reception(self.listening, lobby, door, self.traffic, lambda _: delay_ms)

    def _opened(self, connection: Connection) -> bool:
        self.connections.append(connection)
        return True

    async def connect(self, tls: ssl.SSLContext | None = None) -> Streams:
        return await asyncio.open_connection(
            HOST, self.port, ssl=tls, server_hostname="localhost" if tls else None
        )

    def call(self) -> socket.socket:
        """Connect, and say nothing yet."""
        return socket.create_connection((HOST, self.port), timeout=PATIENCE_S)

    async def until_inside(self, count: int) -> None:
        await until(lambda: self.door.count == count)


@asynccontextmanager
async def desk(door: Door, tls: ListenerTls | None = None, **options: Any) -> AsyncIterator[Desk]:
    """A reception that is open inside the block; in the end everybody must have left."""
    found = Desk(door, tls, **options)
    found.reception.open()
    try:
        yield found
    finally:
        found.reception.close()
        for connection in list(found.connections):
            connection.abort()
        await found.until_inside(0)


async def is_served(streams: Streams) -> bool:
    reader, writer = streams
    writer.write(heartbeat(9))
    length = int.from_bytes(await reader.readexactly(4), "big")
    return int.from_bytes((await reader.readexactly(length))[:4], "big") == 9


async def is_sent_away(streams: Streams) -> bool:
    """Whether the connection ends without a word."""
    reader, writer = streams
    said = b""
    with suppress(OSError):  # A reset or an alert says the same, more rudely.
        said = await reader.read()
    writer.close()
    return said == b""


def tls_of(files: Certificates, client_auth: str = "none") -> ListenerTls:
    settings = Tls(
        cert_file=(str(files.server_certificate),),
        key_file=(str(files.server_key),),
        ca_file=(str(files.authority),),
        client_auth=(client_auth,),
    )
    return ListenerTls(settings, SECURE.name)


def trust(files: Certificates, *, shows_certificate: bool = False) -> ssl.SSLContext:
    """What a client needs."""
    context = ssl.create_default_context(cafile=files.authority)
    if shows_certificate:
        context.load_cert_chain(files.client_certificate, files.client_key)
    return context
