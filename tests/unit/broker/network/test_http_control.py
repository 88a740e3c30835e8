"""The port for metrics and health also serves the control plane."""

import asyncio
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import pytest
import uvloop

from kafscale.broker.network.http import AdminHttp
from kafscale.control_plane.assignment_feed import PartitionOwner
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.errors import UnreachableError
from kafscale.control_plane.server import ControlServer
from kafscale.observability.metrics.broker import Metrics
from unit.broker.harness import run
from unit.broker.network.test_http import ask, get, read_reply
from unit.control_plane.scripted_broker import ScriptedBroker, next_events

PREFACE = b"PRI * HTTP/2.0\r\n\r\n"

every_loop = pytest.mark.parametrize(
    "loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


@asynccontextmanager
async def shared_port(**bounds):
    """A control plane that shares the port for metrics."""
    broker = ScriptedBroker()
    control = ControlServer(broker)
    await control.start()
    admin = AdminHttp(Metrics(), dict, **bounds)
    admin.serve_control(control.dial)
    await admin.listen("127.0.0.1", 0)
    admin.control = control
    admin.broker = broker
    try:
        yield admin
    finally:
        await control.close()
        await admin.close()


def client_of(admin):
    return ControlClient("{}:{}".format(*admin.addresses[0]))


@every_loop
def test_one_port_serves_http_and_the_control_plane(loop):
    async def scenario():
        async with shared_port() as admin, client_of(admin) as client:
            assert admin.control.port is None
            assert (await client.status()).broker_id == "3"
            status, _, body = await ask(admin, get("/metrics"))
            assert (status, b"kafscale_active_connections" in body) == (200, True)
            assert (await client.status()).broker_id == "3"

    run(scenario, loop)


@every_loop
def test_streams_and_requests_share_a_connection(loop):
    async def scenario():
        async with shared_port() as admin, client_of(admin) as client:
            async with aclosing(client.watch_assignments()) as events:
                assert await next_events(events, 1) == ["orders/0 assigned 3 @7"]
                responses = await asyncio.gather(*(client.status() for _ in range(50)))
                assert {response.broker_id for response in responses} == {"3"}
                admin.broker.assign(orders_0=PartitionOwner(4, 8))
                assert len(await next_events(events, 2)) == 2
            assert admin._control_connections == 1

    run(scenario, loop)


def test_control_plane_connections_do_not_count_as_http_connections():
    async def scenario():
        async with shared_port(connections_max=1) as admin, AsyncExitStack() as stack:
            for _ in range(3):
                client = await stack.enter_async_context(client_of(admin))
                await client.status()
            assert (await ask(admin, get("/healthz")))[0] == 200

    run(scenario)


def test_control_plane_connections_are_limited():
    async def scenario():
        async with (
            shared_port(control_connections_max=1) as admin,
            client_of(admin) as first,
            client_of(admin) as second,
        ):
            await first.status()
            with pytest.raises(UnreachableError):
                await second.status()
            await first.status()

    run(scenario)


def test_disconnected_control_plane_client_releases_its_connection():
    async def scenario():
        async with shared_port(control_connections_max=1) as admin:
            for _ in range(5):
                async with client_of(admin) as client:
                    await client.status()
                while admin._control_connections:
                    await ask(admin, get("/healthz"))

    run(scenario)


def test_incomplete_http2_preface_times_out():
    async def scenario():
        async with shared_port(request_seconds_max=0.01) as admin:
            reader, writer = await asyncio.open_connection(*admin.addresses[0])
            writer.write(PREFACE[:10])
            assert await reader.read() == b""
            writer.close()

    run(scenario)


def test_http2_preface_is_a_bad_request_without_control_plane():
    async def scenario():
        admin = AdminHttp(Metrics(), dict)
        await admin.listen("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*admin.addresses[0])
        writer.write(PREFACE)
        assert (await read_reply(reader))[0] == 400
        writer.close()
        await admin.close()

    run(scenario)


@every_loop
def test_close_ends_control_plane_connections(loop):
    async def scenario():
        async with shared_port() as admin, client_of(admin) as client:
            async with aclosing(client.watch_assignments()) as events:
                await anext(events)
                await admin.control.close()
                with pytest.raises(Exception, match="the server is closing"):
                    await anext(events)
            reader, writer = await asyncio.open_connection(*admin.addresses[0])
            writer.write(PREFACE)
            assert await reader.read() == b""
            writer.close()
            assert (await ask(admin, get("/healthz")))[0] == 200

    run(scenario, loop)
