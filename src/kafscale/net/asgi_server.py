"""`AsgiServer`: a uvicorn server on a bound socket, until SIGTERM or SIGINT."""

import asyncio
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn


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
