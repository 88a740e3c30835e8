"""The wake listener: accepts connections for a cluster at zero, and wakes it.

Invariants: only a connection that starts like a Kafka or TLS client wakes the cluster. A connection
that sends nothing, such as a load balancer's health check, or something else does not. The listener
never responds. It holds a bounded number of connections for a while, until brokers are up, then
closes them, so that clients reconnect with their own backoff.
"""

import asyncio
import errno
from collections.abc import Callable, Iterable
from typing import Final

from kafscale.errors import OperatingError
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

PORTS: Final = range(9500, 10_000)
"""One port per cluster at zero; NetworkPolicies allow connections to them from anywhere."""
CONNECTIONS_MAX: Final = 1_000
HOLD_SECONDS_MAX: Final = 20.0
CLIENT_FIRST_BYTES: Final = frozenset({b"\x00", b"\x16"})
"""The first byte of a Kafka request's size, or of a TLS handshake."""
CHUNK_BYTES: Final = 4_096


class WakeListener:
    """Listens in place of a cluster's brokers."""

    def __init__(
        self,
        notify: Callable[[], None],
        *,
        connections_max: int = CONNECTIONS_MAX,
        hold_seconds_max: float = HOLD_SECONDS_MAX,
    ) -> None:
        """`notify` is called once, when the first client connects."""
        self._notify = notify
        self._connections_max = connections_max
        self._hold_seconds_max = hold_seconds_max
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.is_triggered = False

    @property
    def port(self) -> int:
        assert self._server is not None, "not open"
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def open(self, host: str, ports: Iterable[int] = PORTS) -> None:
        """Listen on the first free port."""
        for port in ports:
            try:
                self._server = await asyncio.start_server(
                    self._accept, host, port, limit=CHUNK_BYTES
                )
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise OperatingError(
                        f"cannot open a wake listener on {host}: {error.strerror}"
                    ) from error
            else:
                return
        raise OperatingError(f"no free port for another wake listener on {host}")

    async def close(self) -> None:
        """Stop listening, and close all connections."""
        assert self._server is not None, "not open"
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= self._connections_max:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._hold(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _hold(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(self._hold_seconds_max):
                if await reader.read(1) in CLIENT_FIRST_BYTES:
                    self._trigger(writer)
                    while await reader.read(CHUNK_BYTES):
                        pass
        except (TimeoutError, OSError):
            pass
        finally:
            writer.transport.abort()

    def _trigger(self, writer: asyncio.StreamWriter) -> None:
        if not self.is_triggered:
            logger.info("client woke cluster", client=str(writer.get_extra_info("peername")))
            self.is_triggered = True
            self._notify()
