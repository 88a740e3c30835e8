"""The gRPC servers of the control plane: of a broker, or of the operator.

Invariants: concurrent requests, message sizes and idle connections are bounded; dead clients are
detected. `AllowedSubjects` and interceptors authorize requests; the audit log has every request
that changes something. Methods that are declared but not served here fail with UNIMPLEMENTED and an
explanation. A request that names the broker it is meant for is served by no other broker.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

import grpc

from kafscale.aio.clock import clock
from kafscale.control_plane.assignment_feed import AssignmentFeed
from kafscale.control_plane.errors import BROKER_KEY, NotServedError, WrongBrokerError, status_of
from kafscale.control_plane.messages import METHODS, Method
from kafscale.control_plane.samples import Samples
from kafscale.control_plane.service import ControlledBroker, ControlService
from kafscale.control_plane.tls import AllowedSubjects, ServerTls
from kafscale.errors import ConfigError
from kafscale.net.address import Address, is_loopback
from kafscale.observability import tracing
from kafscale.observability.logging import get_logger
from kafscale.observability.tracing import SpanKind

logger = get_logger(__name__)

REQUESTS_MAX: Final = 256
"""Concurrent requests, watches included; further ones get RESOURCE_EXHAUSTED."""
REQUEST_BYTES_MAX: Final = 4 * 1024 * 1024
CLOSE_SECONDS: Final = 0.3
"""How long pending requests may take when the process stops."""
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", REQUEST_BYTES_MAX),
    ("grpc.max_send_message_length", -1),  # Responses are bounded by the cluster's state.
    ("grpc.max_concurrent_streams", REQUESTS_MAX),
    ("grpc.max_connection_idle_ms", 600_000),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # Clients ping every 7 s while a watch is silent; without this, they would be disconnected.
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.so_reuseport", 0),  # Two servers on one port would be a mistake.
)

Handler = Callable[[Any], Any]
"""Handles a method: returns an awaitable message, or an async generator of messages."""
Context = grpc.aio.ServicerContext[Any, Any]


class GrpcServer:
    """Serves methods of the control plane."""

    def __init__(
        self,
        identity: str,
        handlers: Mapping[str, Handler],
        *,
        requests_max: int = REQUESTS_MAX,
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
        tls: ServerTls | None = None,
        allowed_subjects: AllowedSubjects | None = None,
    ) -> None:
        """`identity` is sent with every error; `handlers` are by method name."""
        assert handlers.keys() <= METHODS.keys(), "all handlers are of declared methods"
        self._identity = identity
        self._handlers_by_name = handlers
        self._requests_max = requests_max
        self._interceptors = interceptors
        self._tls = tls
        self._allowed_subjects = allowed_subjects or AllowedSubjects()
        self._server: grpc.aio.Server | None = None
        self.port = 0
        """The port that it listens on, once it is started."""

    async def start(self, host: str, port: int) -> None:
        """Serve on an address; port 0 is any port."""
        assert self._server is None, "started twice"
        self._server = grpc.aio.server(
            interceptors=self._interceptors,
            options=_OPTIONS,
            maximum_concurrent_rpcs=self._requests_max,
        )
        self._server.add_generic_rpc_handlers(self._handlers())
        try:
            self.port = self._listen(self._server, str(Address(host, port)))
        except RuntimeError as error:
            await self.close()
            raise ConfigError(
                f"the control plane cannot listen on {Address(host, port)}; choose another"
                " broker.controlPort, or stop the process that uses it"
            ) from error
        await self._server.start()
        if self._tls is None and not is_loopback(host):
            logger.warning(
                "control plane requires no certificate: set control.tls", host=host, port=self.port
            )

    async def close(self) -> None:
        """Complete pending requests for a moment, and abort the rest."""
        if self._server is not None:
            await self._server.stop(CLOSE_SECONDS)

    def _listen(self, server: grpc.aio.Server, target: str) -> int:
        if self._tls is None:
            return server.add_insecure_port(target)
        return server.add_secure_port(target, self._tls.credentials)

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
        handler = self._handlers_by_name.get(method.name) or self._not_served(method)
        if method.server_streaming:
            make, serve = grpc.unary_stream_rpc_method_handler, self._stream(method, handler)
        elif method.client_streaming:
            make, serve = grpc.stream_unary_rpc_method_handler, self._unary(method, handler)
        else:
            make, serve = grpc.unary_unary_rpc_method_handler, self._unary(method, handler)
        return make(
            serve,
            request_deserializer=method.request.FromString,
            response_serializer=method.response.SerializeToString,
        )

    def _not_served(self, method: Method) -> Handler:
        def fail(_request: Any) -> Any:
            raise NotServedError(
                f"{method.name} is not served by the {self._identity}; ask a broker"
            )

        return fail

    def _unary(
        self, method: Method, handler: Callable[[Any], Awaitable[Any]]
    ) -> Callable[[Any, Context], Awaitable[Any]]:
        async def handle(request: Any, context: Context) -> Any:
            try:
                self._authorize(method, context)
                caller = tracing.extract_context(context.invocation_metadata())
                with tracing.span(f"control {method.name}", SpanKind.SERVER, parent=caller):
                    return await handler(request)
            except Exception as error:  # noqa: BLE001 - a boundary: every error becomes a status.
                await self._abort(method, context, error)

        return handle

    def _stream(
        self, method: Method, handler: Handler
    ) -> Callable[[Any, Context], Awaitable[None]]:
        async def handle(request: Any, context: Context) -> None:
            try:
                self._authorize(method, context)
                async with aclosing(handler(request)) as responses:
                    async for message in responses:
                        await context.write(message)
            except Exception as error:  # noqa: BLE001 - the same boundary.
                await self._abort(method, context, error)

        return handle

    def _authorize(self, method: Method, context: Context) -> None:
        meant = dict(context.invocation_metadata() or ()).get(BROKER_KEY, self._identity)
        if meant != self._identity:
            raise WrongBrokerError(
                f"this is broker {self._identity}, not {meant!s}: a control plane on 127.0.0.1 can"
                " be reached from its own machine only; set broker.controlHost, and control.tls"
            )
        self._allowed_subjects.authorize(method.name, context)

    async def _abort(self, method: Method, context: Context, error: Exception) -> None:
        status = status_of(error)
        details = str(error)
        if status is grpc.StatusCode.INTERNAL:
            logger.error("control request failed", method=method.name, exc_info=error)
            details = "internal error; see the server's log"
        await context.abort(status, details, ((BROKER_KEY, self._identity),))


class ControlServer(GrpcServer):
    """Serves the control plane of one broker."""

    def __init__(
        self,
        broker: ControlledBroker,
        *,
        clock: Callable[[], int] = clock,
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
        tls: ServerTls | None = None,
        allowed_subjects: AllowedSubjects | None = None,
    ) -> None:
        self._broker = broker
        self._feed = AssignmentFeed(broker.partition_owners)
        handlers = ControlService(broker, self._feed, Samples(clock)).handlers()
        assert handlers.keys() == METHODS.keys(), "every declared method has a handler"
        super().__init__(
            str(broker.id),
            handlers,
            interceptors=interceptors,
            tls=tls,
            allowed_subjects=allowed_subjects,
        )

    async def start(self, host: str, port: int) -> None:
        self._broker.subscribe(self._feed.changed)
        await super().start(host, port)

    async def close(self) -> None:
        self._feed.close()
        await super().close()
