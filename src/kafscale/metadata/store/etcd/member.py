"""One etcd member and its open calls.

Failed calls raise `EtcdError`, which classifies the failure. When a member is given up, its open
streams are cancelled, so that no caller waits for an unresponsive member.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Generic, cast

import grpc

from kafscale.metadata.store.etcd.errors import ErrorKind, EtcdError, to_etcd_error
from kafscale.metadata.store.etcd.methods import Method, Request, Response
from kafscale.observability import tracing
from kafscale.observability.tracing import SpanKind

Metadata = Sequence[tuple[str, str]]
"""gRPC metadata of a request."""


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
