"""`TracingDispatcher`: one span per request, from its bytes to its response.

It replaces `Dispatcher` if tracing is enabled, so that tracing costs nothing otherwise. The span is
the current one while the request is served, so that spans of what it waits for are its children.
Spans carry the client id, but no records.
"""

import asyncio
from typing import Any

from kafscale.broker.requests.context import ClientInfo, RequestContext
from kafscale.broker.requests.dispatcher import Dispatcher
from kafscale.broker.requests.pending_response import InFlightRequest, PendingResponse
from kafscale.broker.requests.route import Parts, VersionedApi
from kafscale.errors import KafscaleError
from kafscale.observability import tracing
from kafscale.observability.tracing import SpanKind
from kafscale.protocol import apis
from kafscale.protocol.codec.wire import Message
from kafscale.protocol.error_codes import ErrorCode

CLIENT_ID_MAX = 100


class TracingDispatcher(Dispatcher):
    """Serves requests by their routes, and records a span for each."""

    def dispatch(
        self, client: ClientInfo, request_frame: memoryview
    ) -> Parts | PendingResponse | None:
        span = tracing.start_span(
            _name(request_frame),
            SpanKind.SERVER,
            {
                "messaging.system": "kafka",
                "network.peer.address": client.host,
                "network.peer.port": client.port,
                "kafscale.listener": client.listener.name,
                "kafscale.request.bytes": len(request_frame),
            },
        )
        response: Parts | PendingResponse | None = None
        try:
            with tracing.use_span(span):
                response = super().dispatch(client, request_frame)
        finally:
            if not isinstance(response, InFlightRequest):
                span.end("" if response is not None else "closed")
        return response

    def _track(
        self,
        versioned_api: VersionedApi,
        context: RequestContext,
        request: Message,
        future: "asyncio.Future[Any]",
    ) -> InFlightRequest:
        in_flight = super()._track(versioned_api, context, request, future)
        span = tracing.current()
        if span is not None:
            # Runs after `_complete`, which is called first and sets the error, if any.
            future.add_done_callback(lambda _: span.end())
        return in_flight

    def _respond(
        self, versioned_api: VersionedApi, context: RequestContext, response: Message | None
    ) -> Parts:
        _set_attributes(versioned_api, context)
        return super()._respond(versioned_api, context, response)

    def _respond_with_error(
        self,
        versioned_api: VersionedApi,
        context: RequestContext,
        request: Message,
        exception: BaseException,
    ) -> Parts | None:
        _set_attributes(versioned_api, context)
        span = tracing.current()
        if span is not None:
            code = exception.code if isinstance(exception, KafscaleError) else -1
            span.end(ErrorCode.of(code).name)
        return super()._respond_with_error(versioned_api, context, request, exception)


def _name(request_frame: memoryview) -> str:
    """The name of the API; all unknown ones share a name, so that there are few."""
    api = apis.BY_KEY.get(int.from_bytes(request_frame[:2], "big"))
    return "unknown request" if api is None else api.name


def _set_attributes(versioned_api: VersionedApi, context: RequestContext) -> None:
    span = tracing.current()
    if span is not None:
        span.set("kafscale.api.version", versioned_api.version)
        span.set("messaging.client.id", (context.client_id or "")[:CLIENT_ID_MAX])
