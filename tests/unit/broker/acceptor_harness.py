"""An acceptor with a real socket, and clients for it."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import uvloop

from kafscale.broker.network.acceptor import Acceptor, Newcomers
from kafscale.broker.network.connection import Connection
from kafscale.broker.network.connection_quotas import ConnectionQuotas
from kafscale.broker.network.listener_config import Listener, SecurityProtocol
from kafscale.broker.network.listener_context import ListenerContext
from kafscale.broker.requests.route import route
from kafscale.broker.security.audit import AuditLog
from kafscale.config.sections.security import Tls
from kafscale.observability.metrics.counters import ConnectionCounters, SecurityCounters
from kafscale.protocol.messages.heartbeat import HEARTBEAT
from kafscale.security.tls.context import ListenerTls
from services.certificates import Certificates
from unit.broker.harness import LIMITS, dispatcher, heartbeat, heartbeat_handler

HOST = "127.0.0.1"
SECURE = Listener("SECURE", SecurityProtocol.SSL)
TIMEOUT_SECONDS = 10

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

on_both_loops = pytest.mark.parametrize(
    "loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


async def until(condition: Callable[[], object]) -> None:
    """Poll for a condition that depends on the other side of a socket."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not condition():  # noqa: ASYNC110 - there is no event for it.
            await asyncio.sleep(0.002)


class AcceptorHarness:
    """An acceptor and its parts."""

    def __init__(
        self, quotas: ConnectionQuotas, tls: ListenerTls | None = None, **options: Any
    ) -> None:
        """Options: `limits`, `delay_ms`, and `wrap`, which may wrap the listening socket."""
        self.quotas = quotas
        self.counters = ConnectionCounters()
        self.connections: list[Connection] = []
        listening = socket.create_server((HOST, 0), backlog=100)
        listening.setblocking(False)
        self.port = listening.getsockname()[1]
        context = ListenerContext(
            dispatcher(route(HEARTBEAT, heartbeat_handler)),
            options.get("limits", LIMITS),
            on_opened=self._opened,
            on_closed=self.connections.remove,
            listener=SECURE if tls else None,
            tls=tls,
            audit=AuditLog(SecurityCounters(), lambda: 0),
        )
        wrap = options.get("wrap", lambda wrapped: wrapped)
        delay_ms = options.get("delay_ms", 0)
        self.listening = wrap(listening)
        self.acceptor = Acceptor(
            self.listening,
            context,
            quotas,
            self.counters,
            lambda _: delay_ms,
            newcomers=Newcomers(),
        )

    def _opened(self, connection: Connection) -> bool:
        self.connections.append(connection)
        return True

    async def connect(self, tls: ssl.SSLContext | None = None) -> Streams:
        return await asyncio.open_connection(
            HOST, self.port, ssl=tls, server_hostname="localhost" if tls else None
        )

    def connect_socket(self) -> socket.socket:
        """Connect without sending anything."""
        return socket.create_connection((HOST, self.port), timeout=TIMEOUT_SECONDS)

    async def until_count(self, count: int) -> None:
        await until(lambda: self.quotas.count == count)


@asynccontextmanager
async def open_acceptor(
    quotas: ConnectionQuotas, tls: ListenerTls | None = None, **options: Any
) -> AsyncIterator[AcceptorHarness]:
    """An open acceptor; all its connections must be closed after the block."""
    harness = AcceptorHarness(quotas, tls, **options)
    harness.acceptor.open()
    try:
        yield harness
    finally:
        harness.acceptor.close()
        for connection in list(harness.connections):
            connection.abort()
        await harness.until_count(0)


async def is_served(streams: Streams) -> bool:
    reader, writer = streams
    writer.write(heartbeat(9))
    length = int.from_bytes(await reader.readexactly(4), "big")
    return int.from_bytes((await reader.readexactly(length))[:4], "big") == 9


async def is_closed_by_server(streams: Streams) -> bool:
    """Whether the server closes the connection without sending a byte."""
    reader, writer = streams
    received = b""
    with suppress(OSError):  # A reset or a TLS alert means the same.
        received = await reader.read()
    writer.close()
    return received == b""


def listener_tls(files: Certificates, client_auth: str = "none") -> ListenerTls:
    settings = Tls(
        cert_file=(str(files.server_certificate),),
        key_file=(str(files.server_key),),
        ca_file=(str(files.authority),),
        client_auth=(client_auth,),
    )
    return ListenerTls(settings, SECURE.name)


def client_tls(files: Certificates, *, with_certificate: bool = False) -> ssl.SSLContext:
    """A client's TLS context."""
    context = ssl.create_default_context(cafile=files.authority)
    if with_certificate:
        context.load_cert_chain(files.client_certificate, files.client_key)
    return context
