"""Tests of the wake listener over real sockets: what wakes the cluster, and its limits."""

import asyncio
import socket
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from kafscale.errors import OperatingError
from kafscale.operator.cluster.scale_to_zero.wake_listener import WakeListener
from unit.broker.harness import heartbeat, run

HOST = "127.0.0.1"
TLS_HELLO = b"\x16\x03\x01\x02\x00\x01"


@asynccontextmanager
async def opened(**bounds):
    woken = asyncio.Event()
    listener = WakeListener(woken.set, **bounds)
    await listener.open(HOST, [0])
    try:
        yield listener, woken
    finally:
        await listener.close()


@asynccontextmanager
async def client(listener, sent=b""):
    reader, writer = await asyncio.open_connection(HOST, listener.port)
    writer.write(sent)
    try:
        yield reader
    finally:
        writer.transport.abort()


async def is_closed(reader):
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("sent", [heartbeat(1), TLS_HELLO], ids=["kafka", "tls"])
def test_client_wakes_the_cluster_and_is_held_until_the_listener_closes(sent):
    async def scenario():
        async with AsyncExitStack() as stack:
            async with opened() as (listener, woken):
                assert not listener.is_triggered
                first = await stack.enter_async_context(client(listener, sent))
                await woken.wait()
                assert listener.is_triggered
                closed = asyncio.ensure_future(is_closed(first))
                async with client(listener):
                    assert not closed.done()
            assert await closed

    run(scenario)


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\n\r\n"], ids=["nothing", "http"])
def test_silent_or_foreign_connections_do_not_wake_the_cluster(sent):
    async def scenario():
        async with (
            opened(hold_seconds_max=0.05) as (listener, woken),
            client(listener, sent) as reader,
        ):
            assert await is_closed(reader)
            assert not woken.is_set()
            assert not listener.is_triggered

    run(scenario)


def test_client_is_disconnected_after_a_while():
    async def scenario():
        async with (
            opened(hold_seconds_max=0.05) as (listener, woken),
            client(listener, heartbeat(1)) as reader,
        ):
            assert await is_closed(reader)
            assert woken.is_set()

    run(scenario)


def test_number_of_connections_is_bounded():
    async def scenario():
        async with (
            opened(connections_max=1) as (listener, woken),
            client(listener, heartbeat(1)) as first,
        ):
            await woken.wait()
            async with client(listener) as second:
                assert await is_closed(second)
            assert not first.at_eof()

    run(scenario)


def test_listeners_use_the_next_free_port():
    async def scenario():
        with socket.create_server((HOST, 0)) as taken:
            port = taken.getsockname()[1]
            listener = WakeListener(lambda: None)
            with pytest.raises(OperatingError, match="no free port"):
                await listener.open(HOST, [port, port])
            await listener.open(HOST, [port, 0])
            assert listener.port != port
            await listener.close()

    run(scenario)


def test_foreign_host_is_an_error():
    async def scenario():
        with pytest.raises(OperatingError, match="cannot open a wake listener on"):
            await WakeListener(lambda: None).open("192.0.2.1", [0])

    run(scenario)
