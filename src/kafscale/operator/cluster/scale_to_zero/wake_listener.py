"""A doorbell: where clients of a cluster that sleeps come instead, and wake it.

The laws: only who speaks as Kafka's clients do rings. Who connects and says nothing, as the health
checks of load balancers do, or speaks something else, lets the cluster sleep. Nobody is answered:
connections are held for a while, for brokers to come meanwhile, and then closed, so that clients
try again in their own time; how many are held has a bound.
"""

import asyncio
import errno
from collections.abc import Callable, Iterable
from typing import Final

from kafscale.errors import OperatingError
from kafscale.observability.logging import get_logger

log = get_logger(__name__)

PORTS: Final = range(9500, 10_000)
"""The ports of doorbells, one a cluster that sleeps; NetworkPolicies let everybody come there."""
HELD_MAX: Final = 1_000
HOLD_SECONDS_MAX: Final = 20.0
GREETINGS: Final = frozenset({b"\x00", b"\x16"})
"""The first bytes of what clients say: the size of a Kafka request, or a handshake of TLS."""
CHUNK_BYTES: Final = 4_096


class Doorbell:
    """Listens in the place of brokers."""

    def __init__(
        self,
        ring: Callable[[], None],
        *,
        held_max: int = HELD_MAX,
        hold_seconds_max: float = HOLD_SECONDS_MAX,
    ) -> None:
        """`ring` is called the first time that somebody rings."""
        self._ring = ring
        self._held_max = held_max
        self._hold_seconds_max = hold_seconds_max
        self._held: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.is_rung = False

    @property
    def port(self) -> int:
        assert self._server is not None, "not open"
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def open(self, host: str, ports: Iterable[int] = PORTS) -> None:
        """Listen, at the first of these ports that is free."""
        for port in ports:
            try:
                self._server = await asyncio.start_server(self._came, host, port, limit=CHUNK_BYTES)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise OperatingError(f"no doorbell on {host}: {error.strerror}") from error
            else:
                return
        raise OperatingError(f"no port is left for another doorbell on {host}")

    async def close(self) -> None:
        """Let nobody in any more, and send away those who wait."""
        assert self._server is not None, "not open"
        self._server.close()
        for task in self._held:
            task.cancel()
        await asyncio.gather(*self._held, return_exceptions=True)
        await self._server.wait_closed()

    def _came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._held) >= self._held_max:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._hold(reader, writer))
        self._held.add(task)
        task.add_done_callback(self._held.discard)

    async def _hold(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(self._hold_seconds_max):
                if await reader.read(1) in GREETINGS:
                    self._wake(writer)
                    while await reader.read(CHUNK_BYTES):
                        pass
        except (TimeoutError, OSError):
            pass
        finally:
            writer.transport.abort()

    def _wake(self, writer: asyncio.StreamWriter) -> None:
        if not self.is_rung:
            log.info("doorbell rung", client=str(writer.get_extra_info("peername")))
            self.is_rung = True
            self._ring()
