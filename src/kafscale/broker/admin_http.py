"""Metrics and health over HTTP/1.1, for Prometheus and Kubernetes.

| path | answer |
|---|---|
| `/metrics` | every metric, in Prometheus' text format |
| `/health`, `/healthz` | 200 as long as the process can answer at all: restart it if not |
| `/readyz` | 200, or 503 with the reasons why clients should be kept away |

The law: nobody gets much here. A request has to fit in `_HEAD_BYTES_MAX` and a time limit, bodies
are not read, connections are few. The exposition gives way to Kafka's clients after every metric.

The control plane will share this port: an HTTP/2 client opens with a preface that reads like the
head of a request (`PRI * HTTP/2.0`), so `_converse` sees it first and can hand the connection on.
"""

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

import msgspec

from kafscale.broker.listening import Address, address_of, open_listeners
from kafscale.observability import exposition
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics import Metrics

log = get_logger(__name__)

_HEAD_BYTES_MAX: Final = 8 * 1024
_END_OF_HEAD: Final = b"\r\n\r\n"
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
    ) -> None:
        """`readiness` names what stands in the way of serving clients, and why; best nothing."""
        self._metrics = metrics
        self._readiness = readiness
        self._request_seconds_max = request_seconds_max
        self._connections_max = connections_max
        self._listeners: list[asyncio.Server] = []
        self._conversations: set[asyncio.Task[None]] = set()
        self.addresses: list[Address] = []

    async def listen(self, host: str, port: int) -> None:
        for listener in await open_listeners(host, port):
            self.addresses.append(address_of(listener))
            self._listeners.append(
                await asyncio.start_server(self._welcome, sock=listener, limit=_HEAD_BYTES_MAX)
            )

    async def close(self) -> None:
        for listener in self._listeners:
            listener.close()
        for conversation in self._conversations:
            conversation.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversation = asyncio.current_task()
        assert conversation is not None
        self._conversations.add(conversation)
        try:
            if len(self._conversations) <= self._connections_max:
                await self._converse(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass  # The other side is gone or asleep; it asked us nothing that could be answered.
        except asyncio.CancelledError:
            pass  # We are closing, and nobody awaits this task but `close`.
        except Exception:
            log.exception("admin request failed")
        finally:
            self._conversations.discard(conversation)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        keeps_alive = True
        while keeps_alive:
            # One limit for all of it: a client may be slow neither to ask nor to listen.
            async with asyncio.timeout(self._request_seconds_max):
                try:
                    head = parse(await reader.readuntil(_END_OF_HEAD))
                except asyncio.LimitOverrunError:
                    head = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
                if isinstance(head, HTTPStatus):
                    keeps_alive = False
                    writer.write(render(Reply(head, b""), keeps_alive=False, with_body=True))
                else:
                    keeps_alive = head.keeps_alive
                    with_body = head.method != "HEAD"
                    reply = await self._reply(head)
                    writer.write(render(reply, keeps_alive=keeps_alive, with_body=with_body))
                await writer.drain()

    async def _reply(self, head: Head) -> Reply:
        if head.path not in _PATHS:
            return Reply(HTTPStatus.NOT_FOUND, _json({"paths": _PATHS}))
        if head.method not in {"GET", "HEAD"}:
            return Reply(HTTPStatus.METHOD_NOT_ALLOWED, b"")
        if head.path == "/metrics":
            return Reply(HTTPStatus.OK, await self._exposition(), exposition.CONTENT_TYPE)
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
