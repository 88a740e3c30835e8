"""A dispatcher that traces: one span for each request, from its bytes to its answer.

It is used in place of `Dispatcher` where tracing is on, so that nobody else pays for it. The span
is the current one while the request is served, so that whatever is waited for is found inside.
What clients write and read is not told; what they call themselves is.
"""

import asyncio
from typing import Any

from kafscale.broker.requests.context import ClientInfo, RequestContext
from kafscale.broker.requests.dispatcher import Dispatcher, Pending, Waiting
from kafscale.broker.requests.versioned_api import Endpoint, Parts
from kafscale.errors import KafscaleError
from kafscale.observability import tracing
from kafscale.observability.tracing import SpanKind
from kafscale.protocol import apis
from kafscale.protocol.codec.wire import Message
from kafscale.protocol.error_codes import ErrorCode

CLIENT_ID_MAX = 100


class TracedDispatcher(Dispatcher):
    """Serves requests by their routes, and tells how each went."""

    def dispatch(self, client: ClientInfo, request_frame: memoryview) -> Parts | Pending | None:
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
        answer: Parts | Pending | None = None
        try:
            with tracing.use_span(span):
                answer = super().dispatch(client, request_frame)
        finally:
            if not isinstance(answer, Waiting):
                span.end("" if answer is not None else "closed")
        return answer

    def _wait(
        self,
        endpoint: Endpoint,
        context: RequestContext,
        request: Message,
        future: "asyncio.Future[Any]",
    ) -> Waiting:
        waiting = super()._wait(endpoint, context, request, future)
        span = tracing.current()
        if span is not None:
            # After `_settle`, which is called first, and knows whether there was an error.
            future.add_done_callback(lambda _: span.end())
        return waiting

    def _answer(
        self, endpoint: Endpoint, context: RequestContext, response: Message | None
    ) -> Parts:
        _tell(endpoint, context)
        return super()._answer(endpoint, context, response)

    def _refuse(
        self, endpoint: Endpoint, context: RequestContext, request: Message, error: BaseException
    ) -> Parts | None:
        _tell(endpoint, context)
        span = tracing.current()
        if span is not None:
            code = error.code if isinstance(error, KafscaleError) else -1
            span.end(ErrorCode.of(code).name)
        return super()._refuse(endpoint, context, request, error)


def _name(request_frame: memoryview) -> str:
    """The name of the API, of which there are few; what else comes has one name together."""
    api = apis.BY_KEY.get(int.from_bytes(request_frame[:2], "big"))
    return "unknown request" if api is None else api.name


def _tell(endpoint: Endpoint, context: RequestContext) -> None:
    span = tracing.current()
    if span is not None:
        span.set("kafscale.api.version", endpoint.version)
        span.set("messaging.client.id", (context.client_id or "")[:CLIENT_ID_MAX])
