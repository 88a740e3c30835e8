"""Metrics and health over HTTP/1.1, for Prometheus and Kubernetes.

| path | answer |
|---|---|
| `/metrics` | every metric, in Prometheus' text format |
| `/health`, `/healthz` | 200 as long as the process can answer at all: restart it if not |
| `/readyz` | 200, or 503 with the reasons why clients should be kept away |

The law: nobody gets much here. A request has to fit in `_HEAD_BYTES_MAX` and a time limit, bodies
are not read, connections are few. The exposition gives way to Kafka's clients after every metric.

The control plane shares this port: an HTTP/2 client opens with a preface that reads like the head
of a request (`PRI * HTTP/2.0`), and from there on its connection is the gRPC server's. Such clients
stay for long, so they have places of their own, and take none from those who look after health.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final

import msgspec

from kafscale.broker.network.sockets import Address, address_of, open_listeners
from kafscale.net.tcp_proxy import Streams, splice
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics import text_format
from kafscale.observability.metrics.broker import Metrics

log = get_logger(__name__)

_HEAD_BYTES_MAX: Final = 8 * 1024
_END_OF_HEAD: Final = b"\r\n\r\n"
_TOO_LARGE: Final = b""
"""Stands for a head of which not all was read."""
_HTTP2_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\n"
"""As far as it is a head: six more bytes follow, which belong to HTTP/2 (RFC 9113, 3.4)."""
_JSON: Final = "application/json"
_PATHS: Final = ("/health", "/healthz", "/metrics", "/readyz")


class Head(msgspec.Struct, frozen=True):
    """The request line and headers of a request."""

    method: str
    path: str
    keeps_alive: bool


class Reply(msgspec.Struct, frozen=True):
    """What is answered to a request."""

    status: HTTPStatus
    body: bytes
    content_type: str = _JSON


class AdminHttp:
    """The listeners for metrics and health, and the conversations on them."""

    def __init__(
        self,
        metrics: Metrics,
        readiness: Callable[[], Mapping[str, str]],
        *,
        request_seconds_max: float = 10.0,
        connections_max: int = 64,
        control_connections_max: int = 64,
    ) -> None:
        """`readiness` names what stands in the way of serving clients, and why; best nothing."""
        self._metrics = metrics
        self._readiness = readiness
        self._request_seconds_max = request_seconds_max
        self._connections_max = connections_max
        self._control: Callable[[], Awaitable[Streams]] | None = None
        self._control_connections_max = control_connections_max
        self._control_connections = 0
        self._closed = False
        self._listeners: list[asyncio.Server] = []
        self._conversations: set[asyncio.Task[None]] = set()
        self.addresses: list[Address] = []

    async def listen(self, host: str, port: int) -> None:
        for listener in await open_listeners(host, port):
            self.addresses.append(address_of(listener))
            self._listeners.append(
                await asyncio.start_server(self._welcome, sock=listener, limit=_HEAD_BYTES_MAX)
            )

    def serve_control(self, dial: Callable[[], Awaitable[Streams]]) -> None:
        """From now on, hand clients of the control plane to the server that `dial` connects to."""
        self._control = dial

    async def close(self) -> None:
        self._closed = True
        for listener in self._listeners:
            listener.close()
        for conversation in self._conversations:
            conversation.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begin a conversation; where it ends before it has begun, the connection ends as well."""
        others = len(self._conversations) - self._control_connections
        if self._closed or others >= self._connections_max:
            writer.close()
            return

        def end(conversation: "asyncio.Task[None]") -> None:
            self._conversations.discard(conversation)
            writer.close()

        conversation = asyncio.get_running_loop().create_task(self._host(reader, writer))
        self._conversations.add(conversation)
        conversation.add_done_callback(end)

    async def _host(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._converse(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass  # The other side is gone or asleep; it asked us nothing that could be answered.
        except asyncio.CancelledError:
            pass  # We are closing, and nobody awaits this task but `close`.
        except Exception:
            log.exception("admin request failed")

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        keeps_alive = True
        while keeps_alive:
            # One limit for all of it: a client may be slow neither to ask nor to listen.
            async with asyncio.timeout(self._request_seconds_max):
                try:
                    received = await reader.readuntil(_END_OF_HEAD)
                except asyncio.LimitOverrunError:
                    received = _TOO_LARGE
                is_control = received == _HTTP2_PREFACE and self._control is not None
                keeps_alive = not is_control and await self._answer(received, writer)
            if is_control:
                await self._hand_over((reader, writer))

    async def _answer(self, received: bytes, writer: asyncio.StreamWriter) -> bool:
        """Answer a request; whether there may be another one."""
        head = parse(received)
        if isinstance(head, HTTPStatus):
            writer.write(render(Reply(head, b""), keeps_alive=False, with_body=True))
        else:
            reply = await self._reply(head)
            with_body = head.method != "HEAD"
            writer.write(render(reply, keeps_alive=head.keeps_alive, with_body=with_body))
        await writer.drain()
        return isinstance(head, Head) and head.keeps_alive

    async def _hand_over(self, client: Streams) -> None:
        """Let a client that has sent its preface talk to the control plane, as long as it likes."""
        assert self._control is not None
        if self._control_connections >= self._control_connections_max:
            return
        self._control_connections += 1
        try:
            server = await self._control()
            server[1].write(_HTTP2_PREFACE)
            await splice(client, server)
        finally:
            self._control_connections -= 1

    async def _reply(self, head: Head) -> Reply:
        if head.path not in _PATHS:
            return Reply(HTTPStatus.NOT_FOUND, _json({"paths": _PATHS}))
        if head.method not in {"GET", "HEAD"}:
            return Reply(HTTPStatus.METHOD_NOT_ALLOWED, b"")
        if head.path == "/metrics":
            return Reply(HTTPStatus.OK, await self._exposition(), text_format.CONTENT_TYPE)
        if head.path == "/readyz":
            reasons = self._readiness()
            status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
            return Reply(status, _json({"ready": not reasons, "reasons": dict(reasons)}))
        return Reply(HTTPStatus.OK, _json({"status": "ok"}))

    async def _exposition(self) -> bytes:
        families = []
        for family in self._metrics.families():
            families.append(family)
            await asyncio.sleep(0)
        return b"".join(families)


def parse(head: bytes) -> Head | HTTPStatus:
    r"""The head of a request, or why there is none.

    >>> parse(b"GET /readyz?verbose HTTP/1.1\r\nHost: broker\r\n\r\n")
    Head(method='GET', path='/readyz', keeps_alive=True)
    >>> parse(b"hello\r\n\r\n")
    <HTTPStatus.BAD_REQUEST: 400>
    """
    if head == _TOO_LARGE:
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    line, *rest = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    match line.split(" "):
        case [method, target, ("HTTP/1.0" | "HTTP/1.1") as version] if target.startswith("/"):
            headers = {name.strip().lower(): value for name, _, value in map(_pair, rest)}
        case _:
            return HTTPStatus.BAD_REQUEST
    asked = headers.get("connection", "").lower()
    # A body is not read, so that nothing after one can be understood.
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    stays = "close" not in asked if version == "HTTP/1.1" else "keep-alive" in asked
    return Head(method, target.partition("?")[0], stays and not has_body)


def render(reply: Reply, *, keeps_alive: bool, with_body: bool) -> bytes:
    """A reply as bytes; without its body it still tells the body's length, as HEAD asks for."""
    lines = [
        f"HTTP/1.1 {reply.status.value} {reply.status.phrase}",
        f"Content-Type: {reply.content_type}",
        f"Content-Length: {len(reply.body)}",
        f"Connection: {'keep-alive' if keeps_alive else 'close'}",
    ]
    if reply.status is HTTPStatus.METHOD_NOT_ALLOWED:
        lines.append("Allow: GET, HEAD")
    head = "\r\n".join(lines).encode() + _END_OF_HEAD
    return head + reply.body if with_body else head


def _pair(line: str) -> tuple[str, str, str]:
    name, colon, value = line.partition(":")
    return name, colon, value.strip()


def _json(value: object) -> bytes:
    return msgspec.json.encode(value) + b"\n"
