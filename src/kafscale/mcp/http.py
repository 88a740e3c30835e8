"""The server over HTTP: for assistants that run elsewhere, and show a token.

The law: no token, no server. Whoever does not show it learns nothing, not even by how long the
answer takes. Requests of web pages that were led here by a name of their own are refused.
"""

import asyncio
import secrets
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from kafscale.config.sections.mcp import Mcp
from kafscale.errors import ConfigError

PATH: Final = "/mcp"
BODY_BYTES_MAX: Final = 1 << 20
SESSIONS_MAX: Final = 64
LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")


class BearerGate:
    """Lets those in who show the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._knows(scope):
            answer = JSONResponse(
                {"error": "unauthorized", "message": "show the token of KAFSCALE_MCP_TOKEN"},
                HTTPStatus.UNAUTHORIZED,
                {"WWW-Authenticate": 'Bearer realm="kafscale"'},
            )
            await answer(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _knows(self, scope: Scope) -> bool:
        shown = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(shown) != 1:
            return False
        kind, _, token = shown[0].partition(b" ")
        return secrets.compare_digest(kind.lower() + b" " + token.strip(), self._expected)


def app(server: MCPServer, settings: Mcp) -> ASGIApp:
    """The server as an application, behind its gate."""
    if not settings.token:
        raise ConfigError(
            "over HTTP, clients show a token: set KAFSCALE_MCP_TOKEN to a long random text"
        )
    names = {settings.host, *LOCAL} if settings.host in LOCAL else {settings.host}
    is_anywhere = settings.host in {"0.0.0.0", "::"}  # noqa: S104 - compared, not listened on.
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=BODY_BYTES_MAX,
        max_sessions=SESSIONS_MAX,
        transport_security=TransportSecuritySettings(
            # Names of a machine that is open to all are its owner's to know; the token guards it.
            enable_dns_rebinding_protection=not is_anywhere,
            allowed_hosts=[entry for name in names for entry in (name, f"{name}:*")],
            allowed_origins=[],
        ),
    )
    return BearerGate(inner, settings.token)


async def serve(server: MCPServer, settings: Mcp, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `announce` is told where."""
    config = uvicorn.Config(
        app(server, settings),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    serving = _Server(config)
    with _listening(settings) as listener:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, serving.stop)
        host, port = listener.getsockname()[:2]
        announce(f"MCP server listening on http://{host}:{port}{PATH}")
        await serving.serve([listener])


class _Server(uvicorn.Server):
    """A server that leaves signals to us, and ends well when it is told to."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    def stop(self) -> None:
        self.should_exit = True


def _listening(settings: Mcp) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM
        )[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        raise ConfigError(
            f"nothing can listen on {settings.host}, port {settings.port}"
            f" ({error.strerror or error}); set mcp.host and mcp.port (KAFSCALE_MCP_HOST,"
            " KAFSCALE_MCP_PORT) to an address and a port that are free"
        ) from None
