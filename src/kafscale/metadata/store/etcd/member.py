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

from kafscale.metadata.store.etcd.errors import EtcdError, Verdict, failure
from kafscale.metadata.store.etcd.methods import Method, Request, Response
from kafscale.observability import tracing
from kafscale.observability.tracing import Kind

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
        """Send one request and wait for its answer."""
        send = self._channel.unary_unary(method.path, method.encode, method.decode)
        service, _, name = method.path.rpartition("/")
        with (
            _translated(self.endpoint),
            tracing.span(
                f"etcd {name}",
                Kind.CLIENT,
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
        """Send one request, and receive as many answers as there are."""
        start = self._channel.unary_stream(method.path, method.encode, method.decode)
        call = start(request, metadata=metadata)
        try:
            with _translated(self.endpoint):
                async for answer in call:
                    yield answer
        finally:
            call.cancel()

    def leave(self) -> None:
        """End all streams: they fail, and may go on elsewhere."""
        for stream in list(self._streams):
            stream.abandon()

    async def close(self) -> None:
        self.leave()
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
        self._abandoned = False
        streams.add(self)

    async def send(self, request: Request) -> None:
        with self._translated():
            await self._call.write(request)

    async def receive(self) -> Response:
        with self._translated():
            response = await self._call.read()
        if response is grpc.aio.EOF:
            raise EtcdError(self.endpoint, "it ended the conversation", Verdict.IN_DOUBT)
        return cast("Response", response)

    def abandon(self) -> None:
        """End it for whoever is waiting for the next message."""
        self._abandoned = True
        self._call.cancel()

    def close(self) -> None:
        self._streams.discard(self)
        self._call.cancel()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            with _translated(self.endpoint):
                yield
        except asyncio.CancelledError:
            # Both a call and the task that waits for it end so; only the task's end is to go on.
            task = asyncio.current_task()
            if not self._abandoned or (task and task.cancelling()):
                raise
            raise EtcdError(self.endpoint, "it does not answer", Verdict.IN_DOUBT) from None


@contextmanager
def _translated(endpoint: str) -> Iterator[None]:
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise failure(endpoint, error.code(), error.details() or "") from None
