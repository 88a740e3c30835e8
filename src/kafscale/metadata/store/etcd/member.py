"""One etcd member, its gRPC channel and its open calls.

Failed calls raise `EtcdError`, which classifies the failure. When a member is given up, its open
streams are cancelled, so that no caller waits for an unresponsive member.

A channel belongs to one store and shares neither connections nor backoff state with others in the
process. It ignores proxy variables of the environment.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Generic, cast

import grpc

from kafscale.metadata.store.etcd.errors import ErrorKind, EtcdError, to_etcd_error
from kafscale.metadata.store.etcd.protobuf import Method, Request, Response
from kafscale.observability import tracing
from kafscale.observability.tracing import SpanKind

Metadata = Sequence[tuple[str, str]]
"""gRPC metadata of a request."""

RESPONSE_BYTES_MAX: Final = 32 << 20
"""The largest response; ranges are read in pages, and watches in fragments."""

_PING_AFTER_MS: Final = 7_000
"""The keepalive interval of an active connection. etcd closes connections that ping more often than
every 5 s."""
_PING_TIMEOUT_MS: Final = 3_000

_RECONNECT_MS_MIN: Final = 100
_RECONNECT_MS_MAX: Final = 1_000
"""A restarted member is found within a second."""


class Member:
    """The channel to a member, by its endpoint."""

    def __init__(self, endpoint: str, channel: grpc.aio.Channel) -> None:
        self.endpoint: Final = endpoint
        self._channel = channel
        self._streams: set[Stream[Any, Any]] = set()

    def is_connected(self) -> bool:
        return self._channel.get_state() is grpc.ChannelConnectivity.READY

    async def connect(self) -> None:
        """Wait for a connection, with as many attempts as it takes."""
        await self._channel.channel_ready()

    def use(self, channel: grpc.aio.Channel) -> grpc.aio.Channel:
        """Use another channel from now on; return the former one, whose calls may continue.

        Its streams are cancelled, so that their readers continue on the new channel.
        """
        former, self._channel = self._channel, channel
        self.cancel_streams()
        return former

    async def call(
        self,
        method: Method[Request, Response],
        request: Request,
        metadata: Metadata,
        seconds: float,
    ) -> Response:
        """Send a unary request."""
        send = self._channel.unary_unary(method.path, method.encode, method.decode)
        service, _, name = method.path.rpartition("/")
        with (
            _converted_errors(self.endpoint),
            tracing.span(
                f"etcd {name}",
                SpanKind.CLIENT,
                {
                    "rpc.system": "grpc",
                    "rpc.service": service.lstrip("/"),
                    "rpc.method": name,
                    "server.address": self.endpoint,
                },
            ),
        ):
            return await send(request, timeout=seconds, metadata=metadata)

    def stream(
        self, method: Method[Request, Response], metadata: Metadata, seconds: float | None = None
    ) -> "Stream[Request, Response]":
        """Open a bidirectional stream; it lasts until it is closed or times out."""
        start = self._channel.stream_stream(method.path, method.encode, method.decode)
        return Stream(self.endpoint, start(timeout=seconds, metadata=metadata), self._streams)

    async def download(
        self, method: Method[Request, Response], request: Request, metadata: Metadata
    ) -> AsyncGenerator[Response, None]:
        """Send one request and yield the responses."""
        start = self._channel.unary_stream(method.path, method.encode, method.decode)
        call = start(request, metadata=metadata)
        try:
            with _converted_errors(self.endpoint):
                async for response in call:
                    yield response
        finally:
            call.cancel()

    def cancel_streams(self) -> None:
        """Cancel all streams; their readers fail and may continue at another member."""
        for stream in list(self._streams):
            stream.abort()

    async def close(self) -> None:
        self.cancel_streams()
        await self._channel.close()


class Stream(Generic[Request, Response]):
    """A bidirectional stream to a member."""

    def __init__(
        self,
        endpoint: str,
        call: "grpc.aio.StreamStreamCall[Request, Response]",
        streams: "set[Stream[Any, Any]]",
    ) -> None:
        self.endpoint: Final = endpoint
        self._call = call
        self._streams = streams
        self._aborted = False
        streams.add(self)

    async def send(self, request: Request) -> None:
        with self._converted_errors():
            await self._call.write(request)

    async def receive(self) -> Response:
        with self._converted_errors():
            response = await self._call.read()
        if response is grpc.aio.EOF:
            raise EtcdError(
                self.endpoint, "the member closed the stream", ErrorKind.UNKNOWN_OUTCOME
            )
        return cast("Response", response)

    def abort(self) -> None:
        """Cancel the stream; a pending `receive` raises `EtcdError`."""
        self._aborted = True
        self._call.cancel()

    def close(self) -> None:
        self._streams.discard(self)
        self._call.cancel()

    @contextmanager
    def _converted_errors(self) -> Iterator[None]:
        try:
            with _converted_errors(self.endpoint):
                yield
        except asyncio.CancelledError:
            # Cancelling the call and cancelling the awaiting task both end here; pass on only the
            # latter.
            task = asyncio.current_task()
            if not self._aborted or (task and task.cancelling()):
                raise
            raise EtcdError(
                self.endpoint, "the member does not respond", ErrorKind.UNKNOWN_OUTCOME
            ) from None


@contextmanager
def _converted_errors(endpoint: str) -> Iterator[None]:
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise to_etcd_error(endpoint, error.code(), error.details() or "") from None


def open_channel(
    endpoint: str, dial_timeout_ms: int, credentials: grpc.ChannelCredentials | None
) -> grpc.aio.Channel:
    """Create a channel; it connects on first use."""
    options = (
        ("grpc.enable_http_proxy", 0),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_receive_message_length", RESPONSE_BYTES_MAX),
        ("grpc.keepalive_time_ms", _PING_AFTER_MS),
        ("grpc.keepalive_timeout_ms", _PING_TIMEOUT_MS),
        # Of pings that measure the bandwidth: while one waits, by default a minute, no other is
        # sent.
        ("grpc.http2.ping_timeout_ms", _PING_TIMEOUT_MS),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.initial_reconnect_backoff_ms", _RECONNECT_MS_MIN),
        ("grpc.max_reconnect_backoff_ms", _RECONNECT_MS_MAX),
        # Despite its name, this is the timeout of one connection attempt.
        ("grpc.min_reconnect_backoff_ms", dial_timeout_ms),
        # A moved member has a new address under the same name.
        ("grpc.dns_min_time_between_resolutions_ms", _RECONNECT_MS_MAX),
    )
    if credentials is None:
        return grpc.aio.insecure_channel(endpoint, options)
    return grpc.aio.secure_channel(endpoint, credentials, options)


def address(endpoint: str) -> str:
    """The host and port of an endpoint; the settings decide about TLS.

    >>> address("https://etcd-0:2379")
    'etcd-0:2379'
    """
    return endpoint.partition("://")[2] or endpoint
