"""The server, with real sockets, on both event loops."""

import asyncio
import socket
from contextlib import asynccontextmanager, suppress

import pytest
import uvloop
from structlog.testing import capture_logs

from kafscale.broker.network.server import Server, ServerSettings
from kafscale.broker.requests.context import ShutdownSignal
from kafscale.broker.requests.dispatcher import Dispatcher
from kafscale.broker.requests.route import route
from kafscale.errors import OperatingError
from kafscale.observability.metrics.broker import Metrics
from kafscale.protocol.frame import FrameReader
from kafscale.protocol.messages.fetch import FETCH, FetchedPartition, FetchedTopic, FetchResponse
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatResponse
from kafscale.protocol.messages.list_groups import LIST_GROUPS
from unit.broker.harness import (
    LIMITS,
    decode_response,
    heartbeat,
    heartbeat_handler,
    request,
    run,
    run_pending,
)

HOST = "127.0.0.1"

on_both_loops = pytest.mark.parametrize(
    "loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


class ServerHarness:
    """A server with one handler, and its parts."""

    def __init__(self, handler=heartbeat_handler, extra=(), **settings):
        self.now = 0.0
        self.metrics = Metrics()
        self.shutdown = ShutdownSignal()
        self.dispatcher = Dispatcher(
            [route(HEARTBEAT, handler, has_own_timeout=True, cancel_on_disconnect=True), *extra],
            None,
            self.metrics,
            self.shutdown,
            request_timeout_ms=60_000,
            other_request_bytes_max=2**31,
            clock=lambda: 0,
            timer=lambda: self.now,
        )
        settings = {"connections_max": 10, "limits": LIMITS, "sweep_seconds": 1000} | settings
        self.server = Server(
            self.dispatcher, ServerSettings(**settings), self.metrics, self.shutdown
        )

    async def connect(self):
        return await asyncio.open_connection(*self.server.addresses[0])


@asynccontextmanager
async def run_server(handler=heartbeat_handler, **settings):
    harness = ServerHarness(handler, **settings)
    await harness.server.listen(HOST, 0)
    try:
        yield harness
    finally:
        await harness.server.drain(0.01)


async def read_answer(reader):
    length = int.from_bytes(await reader.readexactly(4), "big")
    return int.from_bytes((await reader.readexactly(length))[:4], "big")


@on_both_loops
def test_pipelined_requests_are_answered_in_order(loop):
    async def scenario():
        async with run_server() as harness:
            reader, writer = await harness.connect()
            writer.write(b"".join(map(heartbeat, range(100))))
            assert [await read_answer(reader) for _ in range(100)] == list(range(100))
            assert harness.metrics.connections.active == 1
            writer.close()

    run(scenario, loop)


def test_idle_time_counts_only_clients_that_sent_a_request():
    async def scenario():
        async with run_server() as harness:
            harness.metrics.timer = lambda: 1000.0
            began = harness.metrics.connections.left_at
            _, probe = await harness.connect()
            probe.close()
            reader, writer = await harness.connect()
            while harness.metrics.connections.active != 1:
                await run_pending()
            assert harness.metrics.connections.left_at == began
            assert harness.metrics.idle_seconds() == 0
            writer.write(heartbeat(1))
            await read_answer(reader)
            writer.close()
            while harness.metrics.connections.active:
                await run_pending()
            assert harness.metrics.connections.left_at == 1000
            harness.metrics.timer = lambda: 1007.5
            assert harness.metrics.idle_seconds() == 7.5

    run(scenario)


@on_both_loops
def test_server_stops_reading_from_a_client_that_does_not_read(loop):
    async def scenario():
        async with run_server(send_buffer_bytes=4096, receive_buffer_bytes=4096) as harness:
            client = socket.create_connection(harness.server.addresses[0])
            client.setblocking(False)
            sent, stream = 0, b"".join(map(heartbeat, range(1000)))
            quiet_turns = 0
            while quiet_turns < 50:  # Until both directions are blocked.
                try:
                    sent += client.send(stream)
                    quiet_turns = 0
                except BlockingIOError:
                    quiet_turns += 1
                await asyncio.sleep(0)
            answered = harness.metrics.total("Heartbeat")
            assert answered < sent // len(heartbeat(0)), "the rest waits in the sockets"
            client.close()

    run(scenario, loop)


@on_both_loops
def test_large_responses_reach_a_slow_client_complete_and_in_order(loop):
    slices = [memoryview(bytes([number]) * 200_000) for number in range(10)]

    def fetch(context, _request):
        partition = FetchedPartition(context.correlation_id, records=slices)
        return FetchResponse(topics=[FetchedTopic("orders", partitions=[partition])])

    async def scenario():
        async with run_server(extra=[route(FETCH, fetch, lambda *_: FetchResponse())]) as harness:
            client = socket.create_connection(harness.server.addresses[0])
            client.setblocking(False)
            client.sendall(b"".join(request(FETCH, 11, correlation_id=n) for n in range(5)))
            reader, responses = FrameReader(frame_bytes_max=4_000_000), []
            loop = asyncio.get_running_loop()
            while len(responses) < 5:
                responses += reader.feed(await loop.sock_recv(client, 30_000))
            for number, data in enumerate(responses):
                correlation_id, response = decode_response(data, FETCH, 11)
                [partition] = response.topics[0].partitions
                assert (correlation_id, partition.index) == (number, number)
                assert b"".join(partition.records) == b"".join(slices)
            client.close()

    run(scenario, loop)


@on_both_loops
def test_connections_above_the_limit_are_closed_when_accepted(loop):
    async def scenario():
        async with run_server(connections_max=2) as harness:
            kept = [await harness.connect() for _ in range(2)]
            for reader, writer in kept:
                writer.write(heartbeat(1))
                assert await read_answer(reader) == 1
            for _ in range(3):
                reader, writer = await harness.connect()
                with suppress(ConnectionResetError):  # A reset means the same.
                    assert await reader.read() == b""
                writer.close()
            assert (harness.metrics.connections.active, harness.metrics.connections.refused) == (
                2,
                3,
            )
            with capture_logs() as logs:
                harness.server.sweep(0)
                harness.server.sweep(0)
            assert [(event["event"], event["count"]) for event in logs] == [
                ("connections refused", 3)
            ]
            reader, writer = kept.pop()
            writer.close()
            await writer.wait_closed()
            await run_pending(10)
            reader, writer = await harness.connect()
            writer.write(heartbeat(5))
            assert await read_answer(reader) == 5, "a released connection can be used again"
            writer.close()
            kept[0][1].close()

    run(scenario, loop)


@on_both_loops
def test_connection_without_a_request_makes_room_for_another(loop):
    async def scenario():
        async with run_server(connections_max=3) as harness:
            served, served_writer = await harness.connect()
            served_writer.write(heartbeat(1))
            assert await read_answer(served) == 1
            silent = [await harness.connect() for _ in range(2)]
            await run_pending(10)
            for number in range(2):
                reader, writer = await harness.connect()
                writer.write(heartbeat(7))
                assert await read_answer(reader) == 7
                with suppress(ConnectionResetError):
                    assert await silent[number][0].read() == b"", "the oldest one is closed"
                writer.close()
                await writer.wait_closed()
                await run_pending(10)
                silent.append(await harness.connect())
                await run_pending(10)
            served_writer.write(heartbeat(2))
            assert await read_answer(served) == 2, "a client that is served keeps its place"
            assert harness.metrics.connections.refused == 2
            for _, writer in [*silent, (None, served_writer)]:
                writer.close()

    run(scenario, loop)


def test_server_refuses_connections_during_shutdown():
    async def scenario():
        async with run_server() as harness:
            harness.shutdown.set()
            reader, writer = await harness.connect()
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            assert harness.metrics.connections.refused == 1
            writer.close()

    run(scenario)


def test_sweep_times_out_overdue_requests():
    async def scenario():
        begun = asyncio.Event()

        def never(_context, _request):
            begun.set()
            return asyncio.get_running_loop().create_future()

        async with run_server(extra=[route(LIST_GROUPS, never)]) as harness:
            reader, writer = await harness.connect()
            writer.write(request(LIST_GROUPS, 0, correlation_id=4))
            await begun.wait()
            harness.now += 61
            harness.server.sweep(0)
            assert await read_answer(reader) == 4
            writer.close()

    run(scenario)


@on_both_loops
def test_sockets_have_configured_buffers_and_no_delay(loop):
    async def scenario():
        options = []

        def read_options(_context, _request):
            [connection] = harness.server._connections
            accepted = connection._transport.get_extra_info("socket")
            options.extend(
                accepted.getsockopt(level, name)
                for level, name in (
                    (socket.SOL_SOCKET, socket.SO_SNDBUF),
                    (socket.SOL_SOCKET, socket.SO_RCVBUF),
                    (socket.IPPROTO_TCP, socket.TCP_NODELAY),
                )
            )
            return HeartbeatResponse()

        async with run_server(
            read_options, send_buffer_bytes=16_384, receive_buffer_bytes=32_768
        ) as harness:
            reader, writer = await harness.connect()
            writer.write(heartbeat(1))
            await read_answer(reader)
            writer.close()
        send_bytes, receive_bytes, no_delay = options
        # Linux doubles the requested size for bookkeeping.
        assert send_bytes in {16_384, 32_768}
        assert receive_bytes in {32_768, 65_536}
        assert no_delay

    run(scenario, loop)


@on_both_loops
def test_drain_completes_waiting_requests_and_closes_connections(loop):
    async def scenario():
        begun = asyncio.Event()

        def wait(context, _request):
            future = asyncio.get_running_loop().create_future()
            context.shutdown.add_callback(lambda: future.set_result(HeartbeatResponse()))
            begun.set()
            return future

        harness = ServerHarness(wait)
        await harness.server.listen(HOST, 0)
        waiting, idle = await harness.connect(), await harness.connect()
        waiting[1].write(heartbeat(8))
        await begun.wait()
        await harness.server.drain(10)
        assert await read_answer(waiting[0]) == 8
        assert await waiting[0].read() == b""
        assert await idle[0].read() == b""
        assert harness.metrics.connections.active == 0
        with pytest.raises(OSError, match=r"Connect call failed|refused"):
            await harness.connect()
        for _, writer in (waiting, idle):
            writer.close()

    run(scenario, loop)


@on_both_loops
def test_drain_aborts_connections_after_its_timeout(loop):
    async def scenario():
        begun = asyncio.Event()

        def never(_context, _request):
            begun.set()
            return asyncio.get_running_loop().create_future()

        harness = ServerHarness(never)
        await harness.server.listen(HOST, 0)
        reader, writer = await harness.connect()
        writer.write(heartbeat(1))
        await begun.wait()
        with capture_logs() as logs:
            await harness.server.drain(0.01)
        assert [event["event"] for event in logs] == ["drain timed out: connections aborted"]
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()

    run(scenario, loop)


@on_both_loops
def test_sweep_runs_periodically(loop):
    async def scenario():
        limits = {"first_request_seconds": 0.01}
        harness = ServerHarness(
            sweep_seconds=0.005,
            limits=type(LIMITS)(
                **{name: getattr(LIMITS, name) for name in LIMITS.__slots__} | limits
            ),
        )
        await harness.server.listen(HOST, 0)
        reader, writer = await harness.connect()
        assert await reader.read() == b"", "a client without a request is disconnected"
        writer.close()
        await harness.server.drain(1)

    run(scenario, loop)


def test_server_listens_on_all_addresses_of_a_host():
    async def scenario():
        harness = ServerHarness()
        await harness.server.listen("localhost", 0)
        assert len({port for _, port in harness.server.addresses}) == 1
        for address in harness.server.addresses:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(heartbeat(3))
            assert await read_answer(reader) == 3
            writer.close()
        await harness.server.drain(1)

    run(scenario)


def test_port_in_use_is_an_error_and_leaves_nothing_open():
    async def scenario():
        with socket.create_server((HOST, 0)) as taken:
            harness = ServerHarness()
            with pytest.raises(OperatingError, match="in use"):
                await harness.server.listen(HOST, taken.getsockname()[1])
            assert harness.server.addresses == []

    run(scenario)
