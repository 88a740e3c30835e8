"""Listens for Kafka clients, bounds how many there are, and says goodbye to them in good order.

The law: whom the door does not let in is closed as they arrive, before they cost anything. How they
arrive is left to `reception`, what they say to `connection`.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kafscale.broker.network.acceptor import Reception
from kafscale.broker.network.connection import Congestion, Connection, Limits, Lobby
from kafscale.broker.network.connection_quotas import Door
from kafscale.broker.network.listener_config import Listener
from kafscale.broker.network.sockets import Address, address_of, open_listeners
from kafscale.broker.requests.context import Drain
from kafscale.broker.requests.dispatcher import Dispatcher
from kafscale.broker.security.audit import Audit
from kafscale.broker.security.sasl_login import Logins
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.broker import Metrics
from kafscale.protocol.receive_buffer import FrameBufferPool
from kafscale.security.tls.context import ListenerTls

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a server takes from the network."""

    connections_max: int
    connections_per_host_max: int | None = None
    connections_per_host_overrides: dict[str, int] = field(default_factory=dict)
    connection_rate_max: int | None = None
    """How many are accepted in a second; None takes all."""
    send_buffer_bytes: int = 0
    """Of the kernel, for each connection; 0 leaves it to the kernel."""
    receive_buffer_bytes: int = 0
    backlog: int = 1024
    """How many connections the kernel may hold for us to accept."""
    sweep_seconds: float = 1.0
    """How often silent connections and overdue requests are looked for."""
    reload_seconds: float = 10.0
    """How often the files of certificates are looked at."""
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
        logins: Logins | None = None,
        audit: Audit | None = None,
        delay_ms: Callable[[str], int] = lambda _host: 0,
    ) -> None:
        """`logins` and `audit` are for listeners at which clients show who they are.

        `delay_ms` tells after how long somebody is sent away who comes too often from an address.
        """
        self._dispatcher = dispatcher
        self._settings = settings
        self._metrics = metrics
        self._traffic = metrics.connections
        self._drain = drain
        self._congestion = congestion
        self._logins = logins
        self._audit = audit
        self._delay_ms = delay_ms
        self._door = Door(
            settings.connections_max,
            per_host_max=settings.connections_per_host_max,
            per_host_overrides=settings.connections_per_host_overrides,
            rate_max=settings.connection_rate_max,
        )
        self._memory = FrameBufferPool()
        self._connections: set[Connection] = set()
        self._receptions: list[Reception] = []
        self._certificates: list[ListenerTls] = []
        self.addresses: list[Address] = []
        """Where clients are served."""
        self._sweeper: asyncio.TimerHandle | None = None
        self._reloaded_at = 0.0
        self._emptied = asyncio.Event()
        self._refused_told = 0

    async def listen(self, host: str, port: int) -> None:
        """Serve clients on every address of `host`; port 0 takes a free one, the same for all."""
        self.serve(await self._settings.open_listeners(host, port))

    def serve(
        self,
        sockets: Sequence[socket.socket],
        listener: Listener | None = None,
        tls: ListenerTls | None = None,
    ) -> None:
        """Serve clients on sockets that are bound, as a listener asks for."""
        listener = listener or Listener()
        lobby = Lobby(
            self._dispatcher,
            self._settings.limits,
            opened=self._opened,
            closed=self._closed,
            congestion=self._congestion,
            listener=listener,
            tls=tls,
            logins=self._logins if listener.authenticates else None,
            audit=self._audit,
            memory=self._memory,
        )
        if tls is not None:
            self._certificates.append(tls)
        for listening in sockets:
            self.addresses.append(address_of(listening))
            listening.listen(self._settings.backlog)
            reception = Reception(listening, lobby, self._door, self._traffic, self._delay_ms)
            reception.open()
            self._receptions.append(reception)
        if self._sweeper is None:
            self._schedule_sweep()

    async def drain(self, timeout_seconds: float) -> None:
        """Take no more clients and requests, answer those in flight, and close everything."""
        for reception in self._receptions:
            reception.close()
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
        if self._drain.begun:
            self._traffic.refused += 1
            return False
        self._connections.add(connection)
        self._traffic.active = len(self._connections)
        return True

    def _closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._traffic.active = len(self._connections)
        if connection.has_spoken:
            self._traffic.left_at = self._metrics.timer()
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
        """Close silent connections, end overdue requests, take new certificates, tell refusals."""
        for connection in list(self._connections):
            connection.sweep(now)
        self._dispatcher.expire()
        if now - self._reloaded_at > self._settings.reload_seconds:
            self._reloaded_at = now
            for certificate in self._certificates:
                certificate.refresh()
        refused = self._traffic.refused
        if refused > self._refused_told:
            # One line a sweep, however many come: a flood of clients must not become one of lines.
            log.warning("connections refused", count=refused - self._refused_told)
            self._refused_told = refused
