"""Metrics and health over HTTP/1.1, for Prometheus and Kubernetes.

| path | response |
|---|---|
| `/metrics` | every metric, in Prometheus' text format |
| `/health`, `/healthz` | 200 as long as the process responds at all (liveness) |
| `/readyz` | 200, or 503 with the reasons why clients should not connect (readiness); warnings |

Invariants: requests are bounded. A request head has at most `_HEAD_BYTES_MAX` bytes and a time
limit, bodies are not read, and few connections are served. A new connection is always served: it
takes the place of the one whose request, or wait for one, began longest ago, so that clients that
send or read nothing cannot keep out the probes of Kubernetes. The exposition yields to the event
loop after every metric, so that a scrape does not delay Kafka's clients.
"""

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

import msgspec

from kafscale.broker.network.sockets import address_of, bind_host
from kafscale.net.address import Address
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.broker import Metrics
from kafscale.observability.metrics.metric import CONTENT_TYPE

logger = get_logger(__name__)

_HEAD_BYTES_MAX: Final = 8 * 1024
_END_OF_HEAD: Final = b"\r\n\r\n"
_TOO_LARGE: Final = b""
"""Stands for a head that exceeds the limit."""
_JSON: Final = "application/json"
_PATHS: Final = ("/health", "/healthz", "/metrics", "/readyz")


class RequestHead(msgspec.Struct, frozen=True):
    """The request line and headers of a request."""

    method: str
    path: str
    keeps_alive: bool


class Response(msgspec.Struct, frozen=True):
    """The response to a request."""

    status: HTTPStatus
    body: bytes
    content_type: str = _JSON


class AdminHttp:
    """The HTTP server for metrics and health checks."""

    def __init__(
        self,
        metrics: Metrics,
        readiness: Callable[[], Mapping[str, str]],
        warnings: Callable[[], Mapping[str, str]] = dict,
        *,
        request_seconds_max: float = 10.0,
        connections_max: int = 64,
    ) -> None:
        """`readiness` returns the problems that keep the broker from serving clients, by name.

        `warnings` returns problems that do not.
        """
        self._metrics = metrics
        self._readiness = readiness
        self._warnings = warnings
        self._request_seconds_max = request_seconds_max
        self._connections_max = connections_max
        self._closed = False
        self._servers: list[asyncio.Server] = []
        self._connections: dict[asyncio.Task[None], None] = {}
        """Ordered by when their last request could begin."""
        self.addresses: list[Address] = []

    async def listen(self, host: str, port: int) -> None:
        for bound in await bind_host(host, port):
            self.addresses.append(address_of(bound))
            self._servers.append(
                await asyncio.start_server(self._on_connected, sock=bound, limit=_HEAD_BYTES_MAX)
            )

    async def close(self) -> None:
        self._closed = True
        for server in self._servers:
            server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _on_connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a new connection in a task; it is closed also if the task never starts."""
        if self._closed:
            writer.close()
            return
        open_ones = [each for each in self._connections if not each.cancelling()]
        if len(open_ones) >= self._connections_max:
            open_ones[0].cancel()

        def end(connection: "asyncio.Task[None]") -> None:
            self._connections.pop(connection, None)
            writer.close()

        connection = asyncio.get_running_loop().create_task(self._run(reader, writer))
        self._connections[connection] = None
        connection.add_done_callback(end)

    async def _run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass  # The client disconnected or timed out without a complete request.
        except asyncio.CancelledError:
            pass  # `close`, or another connection that took its place; only `close` awaits it.
        except Exception:
            logger.exception("HTTP request failed")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        keeps_alive = True
        this = asyncio.current_task()
        assert this is not None
        while keeps_alive:
            self._connections.pop(this, None)
            self._connections[this] = None
            # One limit for both directions: a client may be slow neither to send nor to read.
            async with asyncio.timeout(self._request_seconds_max):
                try:
                    received = await reader.readuntil(_END_OF_HEAD)
                except asyncio.LimitOverrunError:
                    received = _TOO_LARGE
                keeps_alive = await self._respond(received, writer)

    async def _respond(self, received: bytes, writer: asyncio.StreamWriter) -> bool:
        """Respond to a request; returns whether to keep the connection."""
        head = parse(received)
        if isinstance(head, HTTPStatus):
            writer.write(render(Response(head, b""), keeps_alive=False, with_body=True))
        else:
            response = await self._response(head)
            with_body = head.method != "HEAD"
            writer.write(render(response, keeps_alive=head.keeps_alive, with_body=with_body))
        await writer.drain()
        return isinstance(head, RequestHead) and head.keeps_alive

    async def _response(self, head: RequestHead) -> Response:
        if head.path not in _PATHS:
            return Response(HTTPStatus.NOT_FOUND, _json({"paths": _PATHS}))
        if head.method not in {"GET", "HEAD"}:
            return Response(HTTPStatus.METHOD_NOT_ALLOWED, b"")
        if head.path == "/metrics":
            return Response(HTTPStatus.OK, await self._exposition(), CONTENT_TYPE)
        if head.path == "/readyz":
            reasons = self._readiness()
            status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
            answer = {
                "ready": not reasons,
                "reasons": dict(reasons),
                "warnings": dict(self._warnings()),
            }
            return Response(status, _json(answer))
        return Response(HTTPStatus.OK, _json({"status": "ok"}))

    async def _exposition(self) -> bytes:
        families = []
        for family in self._metrics.families():
            families.append(family)
            await asyncio.sleep(0)
        return b"".join(families)


def parse(head: bytes) -> RequestHead | HTTPStatus:
    r"""Parse the head of a request; returns the error status if it is invalid.

    >>> parse(b"GET /readyz?verbose HTTP/1.1\r\nHost: broker\r\n\r\n")
    RequestHead(method='GET', path='/readyz', keeps_alive=True)
    >>> parse(b"hello\r\n\r\n")
    <HTTPStatus.BAD_REQUEST: 400>
    """
    if head == _TOO_LARGE:
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    line, *rest = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    match line.split(" "):
        case [method, target, ("HTTP/1.0" | "HTTP/1.1") as version] if target.startswith("/"):
            pairs = (line.partition(":") for line in rest)
            headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        case _:
            return HTTPStatus.BAD_REQUEST
    connection = headers.get("connection", "").lower()
    # Bodies are not read, so the connection cannot be reused after one.
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    stays = "close" not in connection if version == "HTTP/1.1" else "keep-alive" in connection
    return RequestHead(method, target.partition("?")[0], stays and not has_body)


def render(response: Response, *, keeps_alive: bool, with_body: bool) -> bytes:
    """A response as bytes; without its body it still has the Content-Length, for HEAD."""
    lines = [
        f"HTTP/1.1 {response.status.value} {response.status.phrase}",
        f"Content-Type: {response.content_type}",
        f"Content-Length: {len(response.body)}",
        f"Connection: {'keep-alive' if keeps_alive else 'close'}",
    ]
    if response.status is HTTPStatus.METHOD_NOT_ALLOWED:
        lines.append("Allow: GET, HEAD")
    head = "\r\n".join(lines).encode() + _END_OF_HEAD
    return head + response.body if with_body else head


def _json(value: object) -> bytes:
    return msgspec.json.encode(value) + b"\n"
