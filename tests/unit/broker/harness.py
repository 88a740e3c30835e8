"""What tests of the broker's shell share: requests as bytes, time that they move, a transport that
is in memory, and an event loop that fails a test where it would only have complained."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from kafscale.broker.network.connection import Connection, Limits, Lobby
from kafscale.broker.requests.context import ClientInfo, Drain
from kafscale.broker.requests.dispatcher import Dispatcher, Waiting
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
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def run(
    test: Callable[[], Coroutine[Any, Any, None]],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> None:
    """Run a test on a loop of its own; an error that only the loop sees fails it as well."""
    complaints: list[dict[str, Any]] = []

    async def watched() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        await test()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(watched())
    assert not complaints


async def turn(count: int = 3) -> None:
    """Let everything happen that is due already."""
    for _ in range(count):
        await asyncio.sleep(0)


def beat(_context: object, request: HeartbeatRequest) -> HeartbeatResponse:
    """A handler that answers at once, with something of the request in it."""
    return HeartbeatResponse(throttle_time_ms=request.generation_id)


def request(
    api: Api[Any, Any] = HEARTBEAT,
    version: int = 4,
    message: Message | None = None,
    *,
    correlation_id: int = 7,
    client_id: str | None = "tester",
) -> bytes:
    """A request as it travels."""
    header = headers.RequestHeader(api.key, version, correlation_id, client_id)
    body = api.request_codec(version).encode(message or api.request())
    return b"".join(
        frame(headers.encode_request_header(header, api.request_header_version(version)), body)
    )


def heartbeat(number: int) -> bytes:
    """A request that can be told from others by its answer."""
    return request(message=HeartbeatRequest(generation_id=number), correlation_id=number)


def produce(number: int = 0, acks: int = -1) -> bytes:
    return request(PRODUCE, 9, ProduceRequest(acks=acks), correlation_id=number)


def framed(data: bytes) -> memoryview:
    """The only frame in some bytes."""
    [found] = FrameReader().feed(data)
    return found


def answer(
    data: bytes | memoryview, api: Api[Any, Any] = HEARTBEAT, version: int = 4
) -> tuple[int, Any]:
    """The correlation id and the message of an answer without its length."""
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
        Drain(),
        request_timeout_ms=REQUEST_SECONDS_MAX * 1000,
        clock=lambda: NOW_MS,
        timer=timer or Timer(),
    )


def dispatched(found: Dispatcher, data: bytes) -> Any:
    """What the dispatcher makes of a request."""
    return found.dispatch(ClientInfo("10.0.0.1", 50_000), framed(data))


async def settled(waiting: Any) -> Any:
    """The parts that a wait ends in."""
    assert isinstance(waiting, Waiting)
    if not waiting.done:
        there = asyncio.Event()
        waiting.notify = there.set
        await there.wait()
    assert waiting.done
    return waiting.parts


class Transport(asyncio.Transport):
    """A connection's other side, in memory: it reads nothing by itself and tells what it saw."""

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
        """The correlation ids of the answers so far, in their order."""
        return [int.from_bytes(found[:4], "big") for found in FrameReader().feed(self.written)]


class Peer:
    """A connection over a transport in memory, to be fed with bytes."""

    def __init__(self, *routes: Route, congestion: Any = None, limits: Limits = LIMITS) -> None:
        self.timer = Timer()
        self.transport = Transport()
        self.closed = False
        self.dispatcher = dispatcher(*routes, timer=self.timer)
        lobby = Lobby(
            self.dispatcher,
            limits,
            opened=lambda _: True,
            closed=self._on_closed,
            congestion=congestion,
        )
        self.connection = Connection(lobby, self.timer.now)
        self.connection.connection_made(self.transport)

    def _on_closed(self, connection: Connection) -> None:
        assert connection is self.connection
        self.closed = True

    def send(self, *data: bytes) -> None:
        """Bytes arrive, in as many pieces as the connection's buffer is too small."""
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


class Desk:
    """Handlers whose answers a test gives when it likes."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.futures: dict[int, asyncio.Future[Any]] = {}

    def _open(self, number: int) -> asyncio.Future[Any]:
        self.begun.append(number)
        self.futures[number] = asyncio.get_running_loop().create_future()
        return self.futures[number]

    def beat(self, context: Any, _request: HeartbeatRequest) -> asyncio.Future[HeartbeatResponse]:
        return self._open(context.correlation_id)

    def produce(self, context: Any, asked: ProduceRequest) -> Any:
        if asked.acks == 0:
            self.begun.append(context.correlation_id)
            return None
        return self._open(context.correlation_id)

    def routes(self) -> tuple[Route, ...]:
        """Heartbeats stand for requests that only wait, produces for those that change things."""
        return (
            route(HEARTBEAT, self.beat, brings_time_limit=True, ends_with_client=True),
            route(PRODUCE, self.produce, lambda *_: ProduceResponse(), brings_time_limit=True),
        )

    def finish(self, *numbers: int) -> None:
        for number in numbers:
            self.futures[number].set_result(HeartbeatResponse())
