"""`AsgiServer`: a uvicorn server on a bound socket, until SIGTERM or SIGINT.

With `RequestTimeoutProtocol`, slow clients cannot take all of its connections.
"""

import asyncio
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS_MAX: Final = 20.0


class AsgiServer(uvicorn.Server):
    """A uvicorn server that stops on signals of the event loop, not by its own signal handlers."""

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event | None = None) -> None:
        """Create it in a running event loop; `stopping` is set when the server stops."""
        super().__init__(config)
        self._stopping = stopping
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.stop)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    def stop(self) -> None:
        if self._stopping is not None:
            self._stopping.set()
        self.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on a host name or an address; raises `OSError`."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return socket.create_server(address[:2], family=family)


class RequestTimeoutProtocol(H11Protocol):
    """HTTP/1.1 with a deadline for each request's headers.

    Uvicorn closes connections that are idle between requests, but waits forever for the first
    request and for the rest of the headers. Slow clients could otherwise take all connections.
    """

    seconds_max = REQUEST_SECONDS_MAX
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._is_idle:
            self._cancel_timer()
        elif self._deadline is None:  # More bytes of the same headers do not extend the deadline.
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        super().connection_lost(exc)

    @property
    def _is_idle(self) -> bool:
        """True if no request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    def _start_timer(self) -> None:
        self._deadline = self.loop.call_later(self.seconds_max, self._on_timeout)

    def _cancel_timer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _on_timeout(self) -> None:
        self._deadline = None
        if self._is_idle:
            self.transport.close()
