"""`route` ties one API to its handler; `VersionedApi` serves one version of it.

    route(HEARTBEAT, heartbeat.handle)
    route(FETCH, fetch.handle, fetch.error_response, cancel_on_disconnect=True)

Invariants: a type checker compares a handler with the messages of its API. Every route can respond
with an error: if the response has no error code of its own in every version, `error_response` is
required.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.requests.sliced_encoding import EncodedResponse
from kafscale.broker.requests.slices import sliced
from kafscale.errors import KafscaleError
from kafscale.observability.metrics.broker import Metrics
from kafscale.protocol import header as headers
from kafscale.protocol.api import Api, Request, Response
from kafscale.protocol.codec.codec import Buffer
from kafscale.protocol.codec.schema import fields
from kafscale.protocol.codec.wire import Message
from kafscale.protocol.frame import frame

Handler = Callable[[RequestContext, Request], Response | Awaitable[Response | None] | None]
"""Serves a request: returns the response, or an awaitable of it; None means no response.

What a handler does before it returns is done in the order of the connection's requests. A future is
cheaper than a coroutine, which needs a task.
"""

ErrorResponse = Callable[[RequestContext, Request, KafscaleError], Response | None]
"""Builds the response that carries an error's code; None closes the connection instead, which is
how a client that expects no response (Produce with acks=0) learns of an error."""


@dataclass(frozen=True, slots=True)
class Route:
    """How one API is served. Created by `route`, which checks the types that are erased here."""

    api: Api[Any, Any]
    handle: Handler[Any, Any]
    error_response: ErrorResponse[Any, Any]
    has_own_timeout: bool
    """The request has a time limit of its own, so that the broker's limit does not apply."""
    cancel_on_disconnect: bool
    """The request only waits, reads, or creates what its client would request again, so that it is
    cancelled when its client disconnects."""
    is_pipelined: bool
    """Later requests of the connection need not wait for the response: either this one only waits
    and reads, or what they can observe was done when its handler returned."""
    results: str
    """The list in the response, if a long list in the request may be served in slices."""


def route(
    api: Api[Request, Response],
    handle: Handler[Request, Response],
    error_response: ErrorResponse[Request, Response] | None = None,
    *,
    has_own_timeout: bool = False,
    cancel_on_disconnect: bool = False,
    is_pipelined: bool = False,
    results: str = "",
) -> Route:
    """Tie an API to its handler; by default, errors use the response's top-level error code."""
    assert error_response is not None or _has_error_code(api), f"{api.name} needs error_response"
    return Route(
        api,
        handle,
        error_response or _error_response,
        has_own_timeout,
        cancel_on_disconnect,
        is_pipelined,
        results,
    )


def _has_error_code(api: Api[Any, Any]) -> bool:
    response: type[Message] = api.response
    return all(
        any(field.name == "error_code" for field in fields(response, version))
        for version in api.versions
    )


def _error_response(context: RequestContext, _request: Message, error: KafscaleError) -> Any:
    values: dict[str, Any] = {"error_code": error.code}
    if "error_message" in context.api.response.__struct_fields__:
        values["error_message"] = str(error)
    return context.api.response(**values)


Parts = list[Buffer]
"""An encoded response, ready to send; empty if the request expects none."""


class VersionedApi:
    """An API in one version: decodes its requests, and encodes their responses.

    One lookup by the first four bytes of a request finds everything that serving it needs.
    """

    __slots__ = (
        "_decode_at",
        "_encode",
        "_request_header_version",
        "_response_header_version",
        "api",
        "counters",
        "handle",
        "route",
        "version",
    )

    def __init__(self, route: Route, version: int, metrics: Metrics) -> None:
        api: Api[Any, Any] = route.api
        self.api = api
        self.version = version
        self.route = route
        self.handle = (
            sliced(api, version, route.handle, route.results) if route.results else route.handle
        )
        self._decode_at = api.request_codec(version).decode_at
        self._encode = api.response_codec(version).encode
        self._request_header_version = api.request_header_version(version)
        self._response_header_version = api.response_header_version(version)
        self.counters = metrics.requests(api.name, version)

    def decode(self, request_frame: memoryview) -> tuple[headers.RequestHeader, Any]:
        header, position = headers.decode_request_header(
            request_frame, self._request_header_version
        )
        # Bytes after the end of a request are ignored, as in Kafka. librdkafka relies on it: to
        # request all topics, it writes the null of a non-compact array, which is 3 bytes longer.
        request, _ = self._decode_at(request_frame, position)
        return header, request

    def encode(self, correlation_id: int, response: Message) -> Parts:
        header = headers.encode_response_header(correlation_id, self._response_header_version)
        if isinstance(response, EncodedResponse):
            return frame(header, response.encode())
        return frame(header, self._encode(response))
