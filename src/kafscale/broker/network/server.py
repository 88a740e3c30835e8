"""`Server`: the listeners of a broker, their connections, and an orderly shutdown.

Invariant: there are never more connections than the connection quotas allow; one beyond them is
closed when it is accepted, or takes the place of one that has sent no request. `acceptor` accepts
connections, `connection` serves them.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kafscale.broker.network.acceptor import Acceptor, Newcomers
from kafscale.broker.network.connection import Connection
from kafscale.broker.network.connection_quotas import ConnectionQuotas
from kafscale.broker.network.listener_config import Listener
from kafscale.broker.network.listener_context import Backpressure, Limits, ListenerContext
from kafscale.broker.network.sockets import address_of, bind_host
from kafscale.broker.requests.context import ShutdownSignal
from kafscale.broker.requests.dispatcher import Dispatcher
from kafscale.broker.requests.response_budget import ResponseBudget
from kafscale.broker.security.audit import AuditLog
from kafscale.broker.security.sasl_login import SaslSessions
from kafscale.net.address import Address
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.broker import Metrics
from kafscale.protocol.frame import FrameBufferPool
from kafscale.security.tls.context import ListenerTls

logger = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The limits and intervals of a server."""

    connections_max: int
    connections_per_host_max: int | None = None
    connections_per_host_overrides: dict[str, int] = field(default_factory=dict)
    connection_rate_max: int | None = None
    """How many connections are accepted per second; None means no limit."""
    send_buffer_bytes: int = 0
    """The kernel's send buffer of a connection; 0 means the system's default."""
    receive_buffer_bytes: int = 0
    backlog: int = 1024
    """How many connections the kernel may queue until they are accepted."""
    sweep_seconds: float = 1.0
    """How often idle connections and overdue requests are checked."""
    reload_seconds: float = 10.0
    """How often certificate files are checked for changes."""
    limits: Limits

    async def bind(self, host: str, port: int) -> list[socket.socket]:
        """Bind every address of `host`, without listening yet."""
        return await bind_host(
            host,
            port,
            send_buffer_bytes=self.send_buffer_bytes,
            receive_buffer_bytes=self.receive_buffer_bytes,
        )


class Server:
    """The listeners of a broker and their connections."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        settings: ServerSettings,
        metrics: Metrics,
        shutdown: ShutdownSignal,
        *,
        backpressure: Backpressure | None = None,
        sasl_sessions: SaslSessions | None = None,
        audit: AuditLog | None = None,
        delay_ms: Callable[[str], int] = lambda _host: 0,
        responses: ResponseBudget | None = None,
    ) -> None:
        """`sasl_sessions` and `audit` are for listeners that authenticate clients.

        `delay_ms` returns after how long to close a connection of an address that exceeds its
        connection rate quota; 0 serves it.
        """
        self._dispatcher = dispatcher
        self._settings = settings
        self._metrics = metrics
        self._counters = metrics.connections
        self._shutdown = shutdown
        self._backpressure = backpressure
        self._sasl_sessions = sasl_sessions
        self._audit = audit
        self._delay_ms = delay_ms
        self._responses = responses
        self._quotas = ConnectionQuotas(
            settings.connections_max,
            per_host_max=settings.connections_per_host_max,
            per_host_overrides=settings.connections_per_host_overrides,
            rate_max=settings.connection_rate_max,
        )
        self._memory = FrameBufferPool()
        self._connections: set[Connection] = set()
        self._newcomers = Newcomers()
        self._acceptors: list[Acceptor] = []
        self._certificates: list[ListenerTls] = []
        self.addresses: list[Address] = []
        """The addresses that accept clients."""
        self._sweeper: asyncio.TimerHandle | None = None
        self._reloaded_at = 0.0
        self._emptied = asyncio.Event()
        self._refused_logged = 0

    def configure(self, settings: ServerSettings) -> None:
        """Set the limits of connections; the other settings are those of the start."""
        self._quotas.configure(
            settings.connections_max,
            per_host_max=settings.connections_per_host_max,
            per_host_overrides=settings.connections_per_host_overrides,
            rate_max=settings.connection_rate_max,
        )

    async def listen(self, host: str, port: int) -> None:
        """Serve clients on every address of `host`; port 0 takes a free one, the same for all."""
        self.serve(await self._settings.bind(host, port))

    def serve(
        self,
        sockets: Sequence[socket.socket],
        listener: Listener | None = None,
        tls: ListenerTls | None = None,
    ) -> None:
        """Serve clients on bound sockets, by the protocol of a listener."""
        listener = listener or Listener()
        context = ListenerContext(
            self._dispatcher,
            self._settings.limits,
            on_opened=self._on_opened,
            on_closed=self._on_closed,
            backpressure=self._backpressure,
            listener=listener,
            tls=tls,
            sasl_sessions=self._sasl_sessions if listener.authenticates else None,
            audit=self._audit,
            memory=self._memory,
            responses=self._responses,
        )
        if tls is not None:
            self._certificates.append(tls)
        for listening in sockets:
            self.addresses.append(address_of(listening))
            listening.listen(self._settings.backlog)
            acceptor = Acceptor(
                listening,
                context,
                self._quotas,
                self._counters,
                self._delay_ms,
                newcomers=self._newcomers,
            )
            acceptor.open()
            self._acceptors.append(acceptor)
        if self._sweeper is None:
            self._schedule_sweep()

    async def drain(self, timeout_seconds: float) -> None:
        """Accept no more clients and requests, answer those in flight, and close everything."""
        for acceptor in self._acceptors:
            acceptor.close()
        self._shutdown.set()
        for connection in list(self._connections):
            connection.stop()
        try:
            async with asyncio.timeout(timeout_seconds):
                while self._connections:
                    self._emptied.clear()
                    await self._emptied.wait()
        except TimeoutError:
            logger.warning("drain timed out: connections aborted", count=len(self._connections))
            for connection in list(self._connections):
                connection.abort()
        if self._sweeper is not None:
            self._sweeper.cancel()

    def _on_opened(self, connection: Connection) -> bool:
        if self._shutdown.is_set:
            self._counters.refused += 1
            return False
        self._connections.add(connection)
        self._counters.active = len(self._connections)
        return True

    def _on_closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._counters.active = len(self._connections)
        if connection.has_sent_request:
            self._counters.left_at = self._metrics.timer()
        if not self._connections:
            self._emptied.set()

    def _schedule_sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweeper = loop.call_later(self._settings.sweep_seconds, self._sweep)

    def _sweep(self) -> None:
        self.sweep(asyncio.get_running_loop().time())
        self._schedule_sweep()

    def sweep(self, now: float) -> None:
        """Close idle connections, end overdue requests, reload certificates, log refusals."""
        for connection in list(self._connections):
            connection.sweep(now)
        self._dispatcher.expire()
        if now - self._reloaded_at > self._settings.reload_seconds:
            self._reloaded_at = now
            for certificate in self._certificates:
                certificate.refresh()
        refused = self._counters.refused
        if refused > self._refused_logged:
            # One line per sweep, so that a flood of clients does not flood the log.
            logger.warning("connections refused", count=refused - self._refused_logged)
            self._refused_logged = refused
