"""Shared by tests of the network layer: encoded requests, a manual timer, a transport in memory,
and an event loop that fails a test for errors that it would only log."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from kafscale.broker.network.connection import Connection
from kafscale.broker.network.listener_context import Limits, ListenerContext
from kafscale.broker.requests.context import ClientInfo, ShutdownSignal
from kafscale.broker.requests.dispatcher import Dispatcher
from kafscale.broker.requests.pending_response import InFlightRequest
from kafscale.broker.requests.route import Route, route
from kafscale.observability.metrics.broker import Metrics
from kafscale.protocol import header as headers
from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Message
from kafscale.protocol.frame import FrameReader, frame
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest, HeartbeatResponse
from kafscale.protocol.messages.produce import PRODUCE, ProduceRequest, ProduceResponse

NOW_MS = 1_700_000_000_000
REQUEST_SECONDS_MAX = 60
LIMITS = Limits(
    request_bytes_max=4096,
    in_flight_requests_max=3,
    first_request_seconds=30,
    frame_seconds=60,
    idle_seconds=600,
    linger_seconds=5,
)


class Timer:
    """A clock in seconds that tests advance."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def run(
    test: Callable[[], Coroutine[Any, Any, None]],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> None:
    """Run a test on a new loop; it also fails for errors that only the loop sees."""
    unhandled: list[dict[str, Any]] = []

    async def checked() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: unhandled.append(context))
        await test()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(checked())
    # gRPC polls for all loops of a process: completions of a former test's loop, which is closed,
    # are reported to the current one.
    own = [each for each in unhandled if "PollerCompletionQueue" not in str(each.get("message"))]
    assert not own, own


async def run_pending(count: int = 3) -> None:
    """Run the callbacks that are due already."""
    for _ in range(count):
        await asyncio.sleep(0)


def heartbeat_handler(_context: object, request: HeartbeatRequest) -> HeartbeatResponse:
    """A handler that responds immediately, with a value of the request."""
    return HeartbeatResponse(throttle_time_ms=request.generation_id)


def request(
    api: Api[Any, Any] = HEARTBEAT,
    version: int = 4,
    message: Message | None = None,
    *,
    correlation_id: int = 7,
    client_id: str | None = "tester",
) -> bytes:
    """An encoded request frame."""
    header = headers.RequestHeader(api.key, version, correlation_id, client_id)
    body = api.request_codec(version).encode(message or api.request())
    return b"".join(
        frame(headers.encode_request_header(header, api.request_header_version(version)), body)
    )


def heartbeat(number: int) -> bytes:
    """A request whose response carries its number."""
    return request(message=HeartbeatRequest(generation_id=number), correlation_id=number)


def produce(number: int = 0, acks: int = -1) -> bytes:
    return request(PRODUCE, 9, ProduceRequest(acks=acks), correlation_id=number)


def framed(data: bytes) -> memoryview:
    """The only frame in some bytes."""
    [only] = FrameReader().feed(data)
    return only


def decode_response(
    data: bytes | memoryview, api: Api[Any, Any] = HEARTBEAT, version: int = 4
) -> tuple[int, Any]:
    """The correlation id and the message of a response frame."""
    view = memoryview(data)
    number, position = headers.decode_response_header(view, api.response_header_version(version))
    return number, api.response_codec(version).decode(view[position:])


def dispatcher(
    *routes: Route, timer: Callable[[], float] | None = None, metrics: Metrics | None = None
) -> Dispatcher:
    services: Any = None  # No handler here uses any.
    return Dispatcher(
        routes,
        services,
        metrics or Metrics(),
        ShutdownSignal(),
        request_timeout_ms=REQUEST_SECONDS_MAX * 1000,
        other_request_bytes_max=2**31,
        clock=lambda: NOW_MS,
        timer=timer or Timer(),
    )


def dispatch(target: Dispatcher, data: bytes) -> Any:
    """What the dispatcher returns for a request."""
    return target.dispatch(ClientInfo("10.0.0.1", 50_000), framed(data))


async def response_parts(in_flight: Any) -> Any:
    """The encoded response of a request in flight, once it is complete."""
    assert isinstance(in_flight, InFlightRequest)
    if not in_flight.done:
        done = asyncio.Event()
        in_flight.notify = done.set
        await done.wait()
    assert in_flight.done
    return in_flight.parts


class Transport(asyncio.Transport):
    """A transport in memory that records what it is asked to do."""

    def __init__(self) -> None:
        super().__init__({"peername": ("10.0.0.1", 50_000)})
        self.written = bytearray()
        self.reading = True
        self.closing = False
        self.aborted = False
        self.write_count = 0

    def writelines(self, parts: Any) -> None:
        assert not self.closing
        self.write_count += 1
        self.written += b"".join(parts)

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = self.aborted = True

    @property
    def answered(self) -> list[int]:
        """The correlation ids of the responses so far, in order."""
        return [int.from_bytes(each[:4], "big") for each in FrameReader().feed(self.written)]


class Peer:
    """A connection over a transport in memory, for tests to send bytes to."""

    def __init__(self, *routes: Route, backpressure: Any = None, limits: Limits = LIMITS) -> None:
        self.timer = Timer()
        self.transport = Transport()
        self.closed = False
        self.dispatcher = dispatcher(*routes, timer=self.timer)
        context = ListenerContext(
            self.dispatcher,
            limits,
            on_opened=lambda _: True,
            on_closed=self._on_closed,
            backpressure=backpressure,
        )
        self.connection = Connection(context, self.timer.now)
        self.connection.connection_made(self.transport)

    def _on_closed(self, connection: Connection) -> None:
        assert connection is self.connection
        self.closed = True

    def send(self, *data: bytes) -> None:
        """Deliver bytes, in as many pieces as the connection's buffer requires."""
        rest = memoryview(b"".join(data))
        while rest and not self.transport.closing:
            buffer = self.connection.get_buffer(-1)
            count = min(len(buffer), len(rest))
            buffer[:count] = rest[:count]
            self.connection.buffer_updated(count)
            rest = rest[count:]

    def sweep(self, seconds_later: float) -> None:
        self.timer.now += seconds_later
        self.connection.sweep(self.timer.now)


class ManualHandlers:
    """Handlers whose responses a test completes."""

    def __init__(self) -> None:
        self.dispatched: list[int] = []
        self.futures: dict[int, asyncio.Future[Any]] = {}

    def _open(self, number: int) -> asyncio.Future[Any]:
        self.dispatched.append(number)
        self.futures[number] = asyncio.get_running_loop().create_future()
        return self.futures[number]

    def heartbeat(
        self, context: Any, _request: HeartbeatRequest
    ) -> asyncio.Future[HeartbeatResponse]:
        return self._open(context.correlation_id)

    def produce(self, context: Any, message: ProduceRequest) -> Any:
        if message.acks == 0:
            self.dispatched.append(context.correlation_id)
            return None
        return self._open(context.correlation_id)

    def routes(self) -> tuple[Route, ...]:
        """Heartbeats stand for requests that only wait, produces for those that append."""
        return (
            route(
                HEARTBEAT,
                self.heartbeat,
                has_own_timeout=True,
                cancel_on_disconnect=True,
                is_pipelined=True,
            ),
            route(
                PRODUCE,
                self.produce,
                lambda *_: ProduceResponse(),
                has_own_timeout=True,
                is_pipelined=True,
            ),
        )

    def finish(self, *numbers: int) -> None:
        for number in numbers:
            self.futures[number].set_result(HeartbeatResponse())
