"""The gRPC server of the control plane, whoever answers there: a broker, or the operator.

In the clear, it listens on a socket of its own that nobody else can open, through which the port
for metrics hands connections in (`dial`), and on a port of its own where there is one. Encrypted,
it listens on its own port alone.

The laws: a request costs little. Those at once, their sizes, and connections that say nothing have
bounds; a client that is gone is found out. Whoever may ask is up to `Admission`, and to
interceptors. What is declared and not answered here is refused with a sentence.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import grpc

from kafscale.control_plane.allowed_names import Admission
from kafscale.control_plane.errors import BROKER_KEY, NotServedError, status_of
from kafscale.control_plane.methods import METHODS, Method
from kafscale.control_plane.tls import ServerTls
from kafscale.errors import ConfigError
from kafscale.observability import tracing
from kafscale.observability.logging import get_logger
from kafscale.observability.tracing import SpanKind

log = get_logger(__name__)

REQUESTS_MAX: Final = 256
"""Requests at once, watches included; further ones are told RESOURCE_EXHAUSTED."""
REQUEST_BYTES_MAX: Final = 4 * 1024 * 1024
CLOSE_SECONDS: Final = 0.3
"""How long requests may take to be answered when the process stops."""
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", REQUEST_BYTES_MAX),
    ("grpc.max_send_message_length", -1),  # What is sent is bounded by what there is.
    ("grpc.max_concurrent_streams", REQUESTS_MAX),
    ("grpc.max_connection_idle_ms", 600_000),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.so_reuseport", 0),  # Two on one port would be a mistake.
)

Answer = Callable[[Any], Any]
"""Answers a method: with a message to be awaited, or with an asynchronous generator of them."""
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Context = grpc.aio.ServicerContext[Any, Any]


class ControlEndpoint:
    """Serves methods of the control plane."""

    def __init__(
        self,
        identity: str,
        answers: Mapping[str, Answer],
        *,
        requests_max: int = REQUESTS_MAX,
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
        tls: ServerTls | None = None,
        admission: Admission | None = None,
    ) -> None:
        """`identity` goes with every refusal; `answers` has who answers, by names of methods."""
        assert answers.keys() <= METHODS.keys(), "only what is declared is answered"
        self._identity = identity
        self._answers = answers
        self._requests_max = requests_max
        self._interceptors = interceptors
        self._tls = tls
        self._admission = admission
        self._server: grpc.aio.Server | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self.port: int | None = None
        """The port of its own that it listens on, if there is one."""

    async def start(self, host: str = "", port: int | None = None) -> None:
        """Serve who comes by `dial`, and at an address as well if a port is named; 0 is any."""
        assert self._server is None, "started twice"
        assert self._tls is None or port is not None, "nobody could come"
        self._server = grpc.aio.server(
            interceptors=self._interceptors,
            options=_OPTIONS,
            maximum_concurrent_rpcs=self._requests_max,
        )
        self._server.add_generic_rpc_handlers(self._handlers())
        if self._tls is None:
            # Only we may open what is in a temporary directory of ours.
            self._directory = tempfile.TemporaryDirectory(prefix="kafscale-")
            self._server.add_insecure_port(f"unix:{self._socket}")
        if port is not None:
            try:
                self.port = self._listen(self._server, _target(host, port))
            except RuntimeError as error:
                await self.close()
                raise ConfigError(f"the control plane cannot listen on {host}:{port}") from error
        await self._server.start()

    async def dial(self) -> Streams:
        """A connection of its own to the server, as if from outside."""
        try:
            return await asyncio.open_unix_connection(self._socket)
        except OSError as error:
            raise ConnectionRefusedError("the control plane is closed") from error

    async def close(self) -> None:
        """Answer what is under way for a moment, and end the rest."""
        if self._server is not None:
            await self._server.stop(CLOSE_SECONDS)
        if self._directory is not None:
            self._directory.cleanup()

    def _listen(self, server: grpc.aio.Server, target: str) -> int:
        if self._tls is None:
            return server.add_insecure_port(target)
        return server.add_secure_port(target, self._tls.credentials)

    @property
    def _socket(self) -> str:
        assert self._directory is not None, "not started"
        return str(Path(self._directory.name) / "control")

    # --- methods ------------------------------------------------------------------------------

    def _handlers(self) -> list[grpc.GenericRpcHandler]:
        services = sorted({method.service for method in METHODS.values()})
        return [
            grpc.method_handlers_generic_handler(
                name,
                {
                    method.name: self._handler(method)
                    for method in METHODS.values()
                    if method.service == name
                },
            )
            for name in services
        ]

    def _handler(self, method: Method) -> Any:
        answer = self._answers.get(method.name) or self._not_served(method)
        if method.answers_stream:
            make, handle = grpc.unary_stream_rpc_method_handler, self._streaming(method, answer)
        elif method.takes_stream:
            make, handle = grpc.stream_unary_rpc_method_handler, self._answering(method, answer)
        else:
            make, handle = grpc.unary_unary_rpc_method_handler, self._answering(method, answer)
        return make(
            handle,
            request_deserializer=method.request.FromString,
            response_serializer=method.response.SerializeToString,
        )

    def _not_served(self, method: Method) -> Answer:
        def refuse(_request: Any) -> Any:
            raise NotServedError(f"{method.name} is not for the {self._identity}; ask a broker")

        return refuse

    def _answering(
        self, method: Method, answer: Callable[[Any], Awaitable[Any]]
    ) -> Callable[[Any, Context], Awaitable[Any]]:
        async def handle(request: Any, context: Context) -> Any:
            try:
                self._admit(method, context)
                caller = tracing.extract_context(context.invocation_metadata())
                with tracing.span(f"control {method.name}", SpanKind.SERVER, parent=caller):
                    return await answer(request)
            except Exception as error:  # noqa: BLE001 - an edge; it is told, and logged if ours.
                await self._refuse(method, context, error)

        return handle

    def _streaming(
        self, method: Method, answer: Answer
    ) -> Callable[[Any, Context], Awaitable[None]]:
        async def handle(request: Any, context: Context) -> None:
            try:
                self._admit(method, context)
                async with aclosing(answer(request)) as answers:
                    async for message in answers:
                        await context.write(message)
            except Exception as error:  # noqa: BLE001 - the same edge.
                await self._refuse(method, context, error)

        return handle

    def _admit(self, method: Method, context: Context) -> None:
        if self._admission is not None:
            self._admission.admit(method.name, context)

    async def _refuse(self, method: Method, context: Context, error: Exception) -> None:
        status = status_of(error)
        details = str(error)
        if status is grpc.StatusCode.INTERNAL:
            log.error("control request failed", method=method.name, exc_info=error)
            details = "a fault of its own; its log says more"
        await context.abort(status, details, ((BROKER_KEY, self._identity),))


def _target(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
