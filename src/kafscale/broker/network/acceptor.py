"""`Acceptor`: accepts the client connections of one listening socket.

Invariants:

* Every accepted connection passes the connection quotas before any work is done for it. It is
  counted until it is closed, also during its TLS handshake.
* A flood of new connections does not starve established ones: few are accepted per iteration of the
  event loop.
* Connections that send no request cannot keep out others: when all places are taken, the one that
  has waited longest makes room. A client that has authenticated and sent a request keeps its place.
* A new certificate applies to the next connection; established connections keep theirs.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from typing import Final

from kafscale.broker.network.connection import Connection
from kafscale.broker.network.connection_quotas import ConnectionQuotas
from kafscale.broker.network.listener_context import ListenerContext
from kafscale.observability.logging import RateLimitedLogger, get_logger
from kafscale.observability.metrics.counters import ConnectionCounters
from kafscale.security.tls.context import alerts_to

logger = get_logger(__name__)
audit = get_logger("kafscale.audit")

ACCEPTS_PER_ITERATION: Final = 4
PAUSE_SECONDS: Final = 0.2
"""How long to pause when the system has no file or memory left for another connection."""
_EXHAUSTED: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Newcomers:
    """The connections that have sent no request yet, oldest first, of all listening sockets."""

    def __init__(self) -> None:
        self._waiting: dict[_AcceptedSocket, tuple[Connection, asyncio.Task[None]]] = {}

    def add(
        self, accepted: "_AcceptedSocket", connection: Connection, handshake: "asyncio.Task[None]"
    ) -> None:
        self._waiting[accepted] = connection, handshake

    def discard(self, accepted: "_AcceptedSocket") -> None:
        self._waiting.pop(accepted, None)

    def try_make_room(self) -> bool:
        """Close the oldest one; False if there is none."""
        while self._waiting:
            accepted = next(iter(self._waiting))
            connection, handshake = self._waiting.pop(accepted)
            if not connection.has_sent_request:
                handshake.cancel()
                connection.reject()
                accepted.release()
                return True
        return False


class Acceptor:
    """Accepts the connections of one listening socket."""

    def __init__(
        self,
        listening: socket.socket,
        context: ListenerContext,
        quotas: ConnectionQuotas,
        counters: ConnectionCounters,
        delay_ms: Callable[[str], int],
        *,
        newcomers: Newcomers,
    ) -> None:
        """`delay_ms` returns after how long to close a connection of this address; 0 serves it.

        A delay means that the address exceeds its connection rate quota.
        """
        self._listening = listening
        self._context = context
        self._quotas = quotas
        self._counters = counters
        self._delay_ms = delay_ms
        self._newcomers = newcomers
        self._loop = asyncio.get_running_loop()
        self._handshakes: dict[asyncio.Task[None], tuple[_AcceptedSocket, Connection]] = {}
        self._pause: asyncio.TimerHandle | None = None
        self._failure_log = RateLimitedLogger(lambda: int(self._loop.time() * 1000))

    def open(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listening.fileno(), self._accept)

    def close(self) -> None:
        """Stop accepting, and close the connections that are not established yet."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listening.fileno())
        self._listening.close()
        for handshake, (_, connection) in self._handshakes.items():
            # Connections that are already established are drained by `Server.drain`.
            if not connection.is_established:
                handshake.cancel()

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_ITERATION):
            wait_seconds = self._quotas.wait_seconds(self._loop.time())
            if wait_seconds:
                self._pause_accepting(wait_seconds)
                return
            try:
                client, address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                logger.warning("accepting connections paused", reason=error.strerror)
                self._pause_accepting(PAUSE_SECONDS)
                return
            self._quotas.consume_token(self._loop.time())
            self._admit(client, address[0])

    def _pause_accepting(self, seconds: float) -> None:
        """Leave new connections in the kernel's backlog for a while."""
        self._loop.remove_reader(self._listening.fileno())
        self._pause = self._loop.call_later(seconds, self.open)

    def _admit(self, client: socket.socket, host: str) -> None:
        if self._quotas.is_full and self._quotas.allows_host(host):
            self._counters.refused += self._newcomers.try_make_room()
        if not self._quotas.try_acquire(host):
            self._counters.refused += 1
            client.close()
            return
        client.setblocking(False)
        accepted = _AcceptedSocket(client, host, self._quotas, self._newcomers)
        connection = Connection(self._context, self._loop.time(), on_lost=accepted.release)
        handshake = self._loop.create_task(self._handshake(accepted, connection))
        self._newcomers.add(accepted, connection, handshake)
        self._handshakes[handshake] = (accepted, connection)
        handshake.add_done_callback(self._on_handshake_done)

    def _on_handshake_done(self, handshake: "asyncio.Task[None]") -> None:
        accepted, connection = self._handshakes.pop(handshake)
        if handshake.cancelled() or not connection.is_established:
            connection.reject()
            accepted.close()

    async def _handshake(self, accepted: "_AcceptedSocket", connection: Connection) -> None:
        """Establish the connection, by a TLS handshake if need be; it then releases its quota."""
        tls, limits = self._context.tls, self._context.limits
        if delay_ms := self._delay_ms(accepted.host):
            # A client that is refused immediately would reconnect immediately.
            await asyncio.sleep(delay_ms / 1000)
            self._counters.refused += 1
            return
        try:
            accepted.is_handed_over = True
            with alerts_to(accepted.client.send):
                await self._loop.connect_accepted_socket(
                    lambda: connection,
                    accepted.client,
                    ssl=tls.context if tls else None,
                    ssl_handshake_timeout=limits.first_request_seconds if tls else None,
                )
        except (OSError, ssl.SSLError) as error:
            # This includes a handshake that times out.
            self._log_failure(accepted.host, error)

    def _log_failure(self, host: str, error: Exception) -> None:
        self._counters.handshakes_failed += 1
        reason = _reason(error)
        self._failure_log.warn(
            audit if "CERTIFICATE" in reason else logger,
            "connection failed before its first request",
            client=host,
            listener=self._context.listener.name,
            reason=reason,
        )


class _AcceptedSocket:
    """A socket that counts against the connection quotas until it is released, once.

    A `Connection` refers to its `_AcceptedSocket`, and not the other way round: reference cycles of
    closed connections would be left to the garbage collector, which stops all clients for a while.
    """

    __slots__ = ("_is_counted", "_newcomers", "_quotas", "client", "host", "is_handed_over")

    def __init__(
        self, client: socket.socket, host: str, quotas: ConnectionQuotas, newcomers: Newcomers
    ) -> None:
        self.client = client
        self.host = host
        self.is_handed_over = False
        """True if the event loop owns the socket and closes it."""
        self._quotas = quotas
        self._newcomers = newcomers
        self._is_counted = True

    def release(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self._quotas.release(self.host)
            self._newcomers.discard(self)

    def close(self) -> None:
        """Close a socket whose connection was not established, and release its quota."""
        if not self.is_handed_over:
            self.client.close()
        self.release()


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or "not TLS"
    return str(error) or type(error).__name__
