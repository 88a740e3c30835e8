"""Listens for Kafka clients, bounds how many there are, and says goodbye to them in good order.

The law: beyond `connections_max` a connection is closed as it arrives, before it costs anything.
What clients say is left to `connection`.
"""

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from kafscale.broker.connection import Congestion, Connection, Limits, Lobby
from kafscale.broker.context import Drain
from kafscale.broker.dispatch import Dispatcher
from kafscale.broker.listening import Address, address_of, open_listeners
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics import Metrics

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a server takes from the network."""

    connections_max: int
    send_buffer_bytes: int = 0
    """Of the kernel, for each connection; 0 leaves it to the kernel."""
    receive_buffer_bytes: int = 0
    backlog: int = 1024
    """How many connections the kernel may hold for us to accept."""
    sweep_seconds: float = 1.0
    """How often silent connections and overdue requests are looked for."""
    limits: Limits

    async def open_listeners(self, host: str, port: int) -> list[socket.socket]:
        """Bind every address of `host`; nobody is served there yet."""
        return await open_listeners(
            host,
            port,
            send_buffer_bytes=self.send_buffer_bytes,
            receive_buffer_bytes=self.receive_buffer_bytes,
        )


class Server:
    """The listeners of a broker and the connections that came through them."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        settings: Settings,
        metrics: Metrics,
        drain: Drain,
        *,
        congestion: Congestion | None = None,
    ) -> None:
        self._dispatcher = dispatcher
        self._settings = settings
        self._metrics = metrics
        self._traffic = metrics.connections
        self._drain = drain
        self._lobby = Lobby(
            dispatcher,
            settings.limits,
            opened=self._opened,
            closed=self._closed,
            congestion=congestion,
        )
        self._connections: set[Connection] = set()
        self._listeners: list[asyncio.Server] = []
        self.addresses: list[Address] = []
        """Where clients are served."""
        self._sweeper: asyncio.TimerHandle | None = None
        self._emptied = asyncio.Event()
        self._refused_told = 0

    async def listen(self, host: str, port: int) -> None:
        """Serve clients on every address of `host`; port 0 takes a free one, the same for all."""
        await self.serve(await self._settings.open_listeners(host, port))

    async def serve(self, listeners: Sequence[socket.socket]) -> None:
        """Serve clients on sockets that are bound."""
        loop = asyncio.get_running_loop()
        for listener in listeners:
            self.addresses.append(address_of(listener))
            self._listeners.append(
                await loop.create_server(
                    lambda: Connection(self._lobby, loop.time()),
                    sock=listener,
                    backlog=self._settings.backlog,
                )
            )
        if self._sweeper is None:
            self._schedule_sweep()

    async def drain(self, timeout_seconds: float) -> None:
        """Take no more clients and requests, answer those in flight, and close everything."""
        for listener in self._listeners:
            listener.close()
        self._drain.begin()
        for connection in list(self._connections):
            connection.stop()
        try:
            async with asyncio.timeout(timeout_seconds):
                while self._connections:
                    self._emptied.clear()
                    await self._emptied.wait()
        except TimeoutError:
            log.warning("clients cut off by the end of the drain", count=len(self._connections))
            for connection in list(self._connections):
                connection.abort()
        if self._sweeper is not None:
            self._sweeper.cancel()

    def _opened(self, connection: Connection) -> bool:
        if len(self._connections) >= self._settings.connections_max or self._drain.begun:
            self._traffic.refused += 1
            return False
        self._connections.add(connection)
        self._traffic.active = len(self._connections)
        return True

    def _closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._traffic.active = len(self._connections)
        if not self._connections:
            self._emptied.set()

    def _schedule_sweep(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._settings.sweep_seconds
        self._sweeper = loop.call_at(due, self._sweep, due)

    def _sweep(self, due: float) -> None:
        now = asyncio.get_running_loop().time()
        self._metrics.event_loop_lag_seconds.observe(now - due)
        self.sweep(now)
        self._schedule_sweep()

    def sweep(self, now: float) -> None:
        """Close silent connections, end overdue requests, and tell of connections refused."""
        for connection in list(self._connections):
            connection.sweep(now)
        self._dispatcher.expire()
        refused = self._traffic.refused
        if refused > self._refused_told:
            # One line a sweep, however many come: a flood of clients must not become one of lines.
            log.warning("connections refused", count=refused - self._refused_told)
            self._refused_told = refused
