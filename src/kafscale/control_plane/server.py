"""The gRPC servers of the control plane: of a broker, or of the operator.

Without TLS, the server listens on a private Unix socket, to which the metrics port forwards
connections (`dial`), and on its own port if one is set. With TLS, it listens on its own port only.

Invariants: concurrent requests, message sizes and idle connections are bounded; dead clients are
detected. `AllowedSubjects` and interceptors authorize requests. Methods that are declared but not
served here fail with UNIMPLEMENTED and an explanation.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import grpc

from kafscale.control_plane.assignment_feed import AssignmentFeed
from kafscale.control_plane.errors import BROKER_KEY, NotServedError, status_of
from kafscale.control_plane.messages import METHODS, Method
from kafscale.control_plane.samples import Samples
from kafscale.control_plane.service import ControlledBroker, ControlService
from kafscale.control_plane.tls import AllowedSubjects, ServerTls
from kafscale.errors import ConfigError
from kafscale.net.address import Address
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
    ("grpc.so_reuseport", 0),  # Two servers on one port would be a mistake.
)

Handler = Callable[[Any], Any]
"""Handles a method: returns an awaitable message, or an async generator of messages."""
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
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
        self._allowed_subjects = allowed_subjects
        self._server: grpc.aio.Server | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self.port: int | None = None
        """Its own port, if it has one."""

    async def start(self, host: str = "", port: int | None = None) -> None:
        """Serve `dial`, and an address as well if a port is given; 0 is any port."""
        assert self._server is None, "started twice"
        assert self._tls is None or port is not None, "with TLS a port is required"
        self._server = grpc.aio.server(
            interceptors=self._interceptors,
            options=_OPTIONS,
            maximum_concurrent_rpcs=self._requests_max,
        )
        self._server.add_generic_rpc_handlers(self._handlers())
        if self._tls is None:
            # Only this user can open files in this temporary directory.
            self._directory = tempfile.TemporaryDirectory(prefix="kafscale-")
            self._server.add_insecure_port(f"unix:{self._socket}")
        if port is not None:
            try:
                self.port = self._listen(self._server, str(Address(host, port)))
            except RuntimeError as error:
                await self.close()
                raise ConfigError(f"the control plane cannot listen on {host}:{port}") from error
        await self._server.start()

    async def dial(self) -> Streams:
        """Open a connection to the server from inside the process."""
        try:
            return await asyncio.open_unix_connection(self._socket)
        except OSError as error:
            raise ConnectionRefusedError("the control plane is closed") from error

    async def close(self) -> None:
        """Complete pending requests for a moment, and abort the rest."""
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
        if self._allowed_subjects is not None:
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
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
        tls: ServerTls | None = None,
        allowed_subjects: AllowedSubjects | None = None,
    ) -> None:
        self._broker = broker
        self._feed = AssignmentFeed(broker.partition_owners)
        handlers = ControlService(broker, self._feed, Samples()).handlers()
        assert handlers.keys() == METHODS.keys(), "every declared method has a handler"
        super().__init__(
            str(broker.id),
            handlers,
            interceptors=interceptors,
            tls=tls,
            allowed_subjects=allowed_subjects,
        )

    async def start(self, host: str = "", port: int | None = None) -> None:
        self._broker.subscribe(self._feed.changed)
        await super().start(host, port)

    async def close(self) -> None:
        self._feed.close()
        await super().close()
