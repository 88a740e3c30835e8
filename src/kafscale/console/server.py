"""Runs the console as a process, until SIGTERM or SIGINT.

Resources are closed in reverse order. Event streams are ended on shutdown, so that it does not wait
for them.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from kafscale.admin.connection import ClusterConnections
from kafscale.config import Config
from kafscale.config.sections.ui import Ui
from kafscale.console.api.route import ApiContext
from kafscale.console.app import create_app
from kafscale.console.http.auth import Authenticator
from kafscale.console.monitor.poller import ClusterMonitor
from kafscale.errors import ConfigError
from kafscale.net.address import Address
from kafscale.net.asgi_server import AsgiServer, RequestTimeoutProtocol, listen
from kafscale.net.tls_files import load_certificate
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

CONNECTIONS_MAX: Final = 1_000
HEADERS_BYTES_MAX: Final = 64 << 10
IDLE_SECONDS: Final = 30
STOP_SECONDS: Final = 2


async def run(config: Config, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `announce` is called with the address."""
    settings, connections = config.ui, ClusterConnections(config)
    ssl_context = _ssl_context(settings)
    monitor = ClusterMonitor(connections, poll_seconds=settings.refresh_interval_ms / 1000)
    authenticator = Authenticator.of(settings)
    with _listen(settings.host, settings.port) as bound:
        stopping = asyncio.Event()
        app = create_app(ApiContext(config, connections, monitor), authenticator, stopping)
        server = AsgiServer(_uvicorn_config(app, ssl_context, settings.trusted_proxies), stopping)
        polling = asyncio.create_task(monitor.run())
        polling.add_done_callback(lambda _: server.stop())
        if not authenticator.is_configured:
            logger.warning(
                "login is disabled: KAFSCALE_UI_USERNAME and KAFSCALE_UI_PASSWORD are not set"
            )
        announce(f"console listening on {_url(bound, settings)}")
        try:
            await server.serve([bound])
        finally:
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)
    if not polling.cancelled() and (error := polling.exception()):
        raise error
    logger.info("console stopped")


def _uvicorn_config(
    app: ASGIApp, ssl_context: ssl.SSLContext | None, proxies: Sequence[str]
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=RequestTimeoutProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        # Other clients could forge the address that failed logins are counted for.
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        server_header=False,
        limit_concurrency=CONNECTIONS_MAX,
        h11_max_incomplete_event_size=HEADERS_BYTES_MAX,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
        ssl_context_factory=None if ssl_context is None else lambda *_: ssl_context,
    )


def _listen(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except OSError as error:
        raise ConfigError(
            f"the console cannot listen on {host}, port {port} ({error.strerror or error}); set"
            " ui.host and ui.port (KAFSCALE_UI_HOST, KAFSCALE_UI_PORT) to an address and a port"
            " that are free"
        ) from None


def _ssl_context(settings: Ui) -> ssl.SSLContext | None:
    if not settings.cert_file:
        return None
    ssl_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ssl_context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_certificate(ssl_context, "ui", settings.cert_file, settings.key_file)
    return ssl_context


def _url(bound: socket.socket, settings: Ui) -> str:
    address = Address(*bound.getsockname()[:2])
    return f"{'https' if settings.cert_file else 'http'}://{address}"
