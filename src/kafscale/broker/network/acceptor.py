"""Where clients arrive at one listener: accepted, counted, encrypted if need be, and handed on.

The laws:

* Whoever is accepted has passed the door, before anything is spent on them; they are counted until
  they are gone, also while they are only about to encrypt.
* A flood of newcomers does not starve those who are in: few are accepted at a time, and in between
  everybody else has their turn.
* A new certificate holds for the next one who comes; nobody is sent away for it.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from typing import Final

from kafscale.broker.network.connection import Connection, Lobby
from kafscale.broker.network.connection_quotas import Door
from kafscale.observability.log_limiter import RateLimitedLogger
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.counters import ConnectionCounters
from kafscale.security.tls.alerts import alerts_to

log = get_logger(__name__)
audit = get_logger("kafscale.audit")

ACCEPTED_AT_A_TIME: Final = 4
PAUSE_SECONDS: Final = 0.2
"""How long to wait when the system has no file or memory left for another connection."""
_EXHAUSTED: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Reception:
    """Accepts the clients of one listening socket."""

    def __init__(
        self,
        listening: socket.socket,
        lobby: Lobby,
        door: Door,
        traffic: ConnectionCounters,
        delay_ms: Callable[[str], int],
    ) -> None:
        """`delay_ms` says after how long somebody is sent away who comes too often; 0 lets in."""
        self._listening = listening
        self._lobby = lobby
        self._door = door
        self._traffic = traffic
        self._delay_ms = delay_ms
        self._loop = asyncio.get_running_loop()
        self._arriving: dict[asyncio.Task[None], tuple[_Newcomer, Connection]] = {}
        self._pause: asyncio.TimerHandle | None = None
        self._failures = RateLimitedLogger(lambda: int(self._loop.time() * 1000))

    def open(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listening.fileno(), self._accept)

    def close(self) -> None:
        """Accept nobody any more, and send away those who are not in yet."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listening.fileno())
        self._listening.close()
        for arriving, (_, connection) in self._arriving.items():
            # Who is in, but for the last turn of the loop, is seen out like all others.
            if not connection.is_made:
                arriving.cancel()

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_A_TIME):
            wait_seconds = self._door.wait_seconds(self._loop.time())
            if wait_seconds:
                self._close_for(wait_seconds)
                return
            try:
                client, address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                log.warning("no more connections can be accepted", reason=error.strerror)
                self._close_for(PAUSE_SECONDS)
                return
            self._door.pay()
            self._welcome(client, address[0])

    def _close_for(self, seconds: float) -> None:
        """Leave newcomers in the queue of the system for a while."""
        self._loop.remove_reader(self._listening.fileno())
        self._pause = self._loop.call_later(seconds, self.open)

    def _welcome(self, client: socket.socket, host: str) -> None:
        if not self._door.enter(host):
            self._traffic.refused += 1
            client.close()
            return
        client.setblocking(False)
        newcomer = _Newcomer(client, host, self._door)
        connection = Connection(self._lobby, self._loop.time(), gone=newcomer.leave)
        arriving = self._loop.create_task(self._usher(newcomer, connection))
        self._arriving[arriving] = (newcomer, connection)
        arriving.add_done_callback(self._arrived)

    def _arrived(self, arriving: "asyncio.Task[None]") -> None:
        newcomer, connection = self._arriving.pop(arriving)
        if arriving.cancelled() or not connection.is_made:
            connection.refuse()
            newcomer.send_away()

    async def _usher(self, newcomer: "_Newcomer", connection: Connection) -> None:
        """See somebody in; from then on it is the connection that tells when they leave."""
        tls, limits = self._lobby.tls, self._lobby.limits
        if delay_ms := self._delay_ms(newcomer.host):
            # Sent away at once, most would be back at once.
            await asyncio.sleep(delay_ms / 1000)
            self._traffic.refused += 1
            return
        try:
            newcomer.is_handed_over = True
            with alerts_to(newcomer.client.send):
                await self._loop.connect_accepted_socket(
                    lambda: connection,
                    newcomer.client,
                    ssl=tls.context if tls else None,
                    ssl_handshake_timeout=limits.first_request_seconds if tls else None,
                )
        except (OSError, ssl.SSLError) as error:
            # Also a handshake that takes too long.
            self._tell_failure(newcomer.host, error)

    def _tell_failure(self, host: str, error: Exception) -> None:
        self._traffic.handshakes_failed += 1
        reason = _reason(error)
        self._failures.warn(
            audit if "CERTIFICATE" in reason else log,
            "connection failed before its first request",
            client=host,
            listener=self._lobby.listener.name,
            reason=reason,
        )


class _Newcomer:
    """Somebody who was let in by the door, and is counted out once, however they leave.

    Connections know their newcomers, and not the other way round: circles of those who came and
    went would be left to the garbage collector, which stops everybody for a while.
    """

    __slots__ = ("_door", "_is_counted", "client", "host", "is_handed_over")

    def __init__(self, client: socket.socket, host: str, door: Door) -> None:
        self.client = client
        self.host = host
        self.is_handed_over = False
        """Whether the socket is the event loop's, which closes it."""
        self._door = door
        self._is_counted = True

    def leave(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self._door.leave(self.host)

    def send_away(self) -> None:
        """See that somebody leaves who is not in, or who was about to be when we closed."""
        if not self.is_handed_over:
            self.client.close()
        self.leave()


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or "not TLS"
    return str(error) or type(error).__name__
