"""The console as a process: serves until it is told to stop.

What is opened first is closed last. Whoever listens to events is let go when the console stops, so
that it does not wait for them.
"""

import asyncio
import signal
import socket
import ssl
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from kafscale.admin.connection import Reach
from kafscale.config import Config
from kafscale.config.sections.ui import Ui
from kafscale.console.app import application
from kafscale.console.context import Room
from kafscale.console.http.auth import Door
from kafscale.console.http.request_timeout import ImpatientProtocol
from kafscale.console.monitor.poller import Watch
from kafscale.errors import ConfigError
from kafscale.net.tls_files import show
from kafscale.observability.logging import get_logger

log = get_logger(__name__)

CONNECTIONS_MAX: Final = 1_000
HEADERS_BYTES_MAX: Final = 64 << 10
IDLE_SECONDS: Final = 30
STOP_SECONDS: Final = 2
BACKLOG: Final = 128


async def run(config: Config, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `announce` is told where."""
    settings, reach = config.ui, Reach(config)
    context = _context(settings)
    watch = Watch(reach, look_seconds=settings.look_interval_ms / 1000)
    door = Door.of(settings)
    with _listening(settings.host, settings.port) as bound:
        stopping = asyncio.Event()
        app = application(Room(config, reach, watch), door, stopping)
        server = _Server(_configured(app, context, settings.trusted_proxies), stopping)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.stop)
        watching = asyncio.create_task(watch.run())
        watching.add_done_callback(lambda _: server.stop())
        if not door.is_configured:
            log.warning(
                "nobody can sign in: KAFSCALE_UI_USERNAME and KAFSCALE_UI_PASSWORD are not set"
            )
        announce(f"console listening on {_url(bound, settings)}")
        try:
            await server.serve([bound])
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
    if not watching.cancelled() and (error := watching.exception()):
        raise error
    log.info("console stopped")


class _Server(uvicorn.Server):
    """A server that leaves signals to us."""

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    def stop(self) -> None:
        self._stopping.set()
        self.should_exit = True


def _configured(
    app: ASGIApp, context: ssl.SSLContext | None, proxies: Sequence[str]
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=ImpatientProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        # Anybody else could name an address that failed logins count for.
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        server_header=False,
        limit_concurrency=CONNECTIONS_MAX,
        h11_max_incomplete_event_size=HEADERS_BYTES_MAX,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
        ssl_context_factory=None if context is None else lambda *_: context,
    )


@contextmanager
def _listening(host: str, port: int) -> Generator[socket.socket, None, None]:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigError(
            f"the console cannot listen on {host}, port {port} ({error.strerror or error}); set"
            " ui.host and ui.port (KAFSCALE_UI_HOST, KAFSCALE_UI_PORT) to an address and a port"
            " that are free"
        ) from None
    with bound:
        yield bound


def _context(settings: Ui) -> ssl.SSLContext | None:
    if not settings.cert_file:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    show(context, "ui", settings.cert_file, settings.key_file)
    return context


def _url(bound: socket.socket, settings: Ui) -> str:
    host, port = bound.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if settings.cert_file else 'http'}://{shown}:{port}"
