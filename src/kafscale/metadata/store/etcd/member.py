"""One member of etcd, and the calls that are open there.

The law: whatever goes wrong in a call is an `EtcdError`, which says what that means. A member that
is left takes its open streams with it, so that nobody waits for one that may never speak again.
Which member to use is left to `members`.
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
"""What goes with a request besides its message."""


class Member:
    """A channel to a member, by its endpoint."""

    def __init__(self, endpoint: str, channel: grpc.aio.Channel) -> None:
        self.endpoint: Final = endpoint
        self._channel = channel
        self._streams: set[Stream[Any, Any]] = set()

    def is_connected(self) -> bool:
        return self._channel.get_state() is grpc.ChannelConnectivity.READY

    async def connect(self) -> None:
        """Wait until there is a connection, however often it has to be tried."""
        await self._channel.channel_ready()

    async def call(
        self,
        method: Method[Request, Response],
        request: Request,
        metadata: Metadata,
        seconds: float,
    ) -> Response:
        """Send one request and wait for its response."""
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
        """A conversation, which lasts until it is closed or the seconds are over."""
        start = self._channel.stream_stream(method.path, method.encode, method.decode)
        return Stream(self.endpoint, start(timeout=seconds, metadata=metadata), self._streams)

    async def download(
        self, method: Method[Request, Response], request: Request, metadata: Metadata
    ) -> AsyncGenerator[Response, None]:
        """Send one request, and receive as many responses as there are."""
        start = self._channel.unary_stream(method.path, method.encode, method.decode)
        call = start(request, metadata=metadata)
        try:
            with _converted_errors(self.endpoint):
                async for response in call:
                    yield response
        finally:
            call.cancel()

    def cancel_streams(self) -> None:
        """End all streams: they fail, and may go on elsewhere."""
        for stream in list(self._streams):
            stream.abort()

    async def close(self) -> None:
        self.cancel_streams()
        await self._channel.close()


class Stream(Generic[Request, Response]):
    """Messages to and from a member, until one side ends it."""

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
            raise EtcdError(self.endpoint, "it ended the conversation", ErrorKind.UNKNOWN_OUTCOME)
        return cast("Response", response)

    def abort(self) -> None:
        """End it for whoever is waiting for the next message."""
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
            # Both a call and the task that waits for it end so; only the task's end is to go on.
            task = asyncio.current_task()
            if not self._aborted or (task and task.cancelling()):
                raise
            raise EtcdError(
                self.endpoint, "it does not response", ErrorKind.UNKNOWN_OUTCOME
            ) from None


@contextmanager
def _converted_errors(endpoint: str) -> Iterator[None]:
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise to_etcd_error(endpoint, error.code(), error.details() or "") from None
