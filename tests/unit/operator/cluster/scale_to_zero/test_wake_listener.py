"""Doorbells, over real sockets: who rings, who does not, and that nobody is held for ever."""

import asyncio
import socket
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from kafscale.errors import OperatingError
from kafscale.operator.cluster.scale_to_zero.wake_listener import Doorbell
from unit.broker.harness import heartbeat, run

HOST = "127.0.0.1"
TLS_HELLO = b"\x16\x03\x01\x02\x00\x01"


@asynccontextmanager
async def hung_up(**bounds):
    rung = asyncio.Event()
    bell = Doorbell(rung.set, **bounds)
    await bell.open(HOST, [0])
    try:
        yield bell, rung
    finally:
        await bell.close()


@asynccontextmanager
async def client(bell, said=b""):
    reader, writer = await asyncio.open_connection(HOST, bell.port)
    writer.write(said)
    try:
        yield reader
    finally:
        writer.transport.abort()


async def is_sent_away(reader):
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("said", [heartbeat(1), TLS_HELLO], ids=["kafka", "tls"])
def test_a_client_rings_and_is_held_until_the_bell_is_taken_down(said):
    async def story():
        async with AsyncExitStack() as stack:
            async with hung_up() as (bell, rung):
                assert not bell.is_rung
                first = await stack.enter_async_context(client(bell, said))
                await rung.wait()
                assert bell.is_rung
                sent_away = asyncio.ensure_future(is_sent_away(first))
                async with client(bell):
                    assert not sent_away.done()
            assert await sent_away

    run(story)


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\n\r\n"], ids=["nothing", "http"])
def test_who_says_nothing_or_something_else_lets_it_sleep(said):
    async def story():
        async with hung_up(hold_seconds_max=0.05) as (bell, rung), client(bell, said) as reader:
            assert await is_sent_away(reader)
            assert not rung.is_set()
            assert not bell.is_rung

    run(story)


def test_a_client_is_let_go_after_a_while_to_try_again():
    async def story():
        async with (
            hung_up(hold_seconds_max=0.05) as (bell, rung),
            client(bell, heartbeat(1)) as reader,
        ):
            assert await is_sent_away(reader)
            assert rung.is_set()

    run(story)


def test_there_is_room_for_so_many_and_no_more():
    async def story():
        async with hung_up(held_max=1) as (bell, rung), client(bell, heartbeat(1)) as first:
            await rung.wait()
            async with client(bell) as second:
                assert await is_sent_away(second)
            assert not first.at_eof()

    run(story)


def test_bells_of_many_clusters_have_ports_of_their_own_as_long_as_there_are_some():
    async def story():
        with socket.create_server((HOST, 0)) as taken:
            port = taken.getsockname()[1]
            bell = Doorbell(lambda: None)
            with pytest.raises(OperatingError, match="no port is left"):
                await bell.open(HOST, [port, port])
            await bell.open(HOST, [port, 0])
            assert bell.port != port
            await bell.close()

    run(story)


def test_a_host_that_is_not_ours_is_told_of():
    async def story():
        with pytest.raises(OperatingError, match="no doorbell on"):
            await Doorbell(lambda: None).open("192.0.2.1", [0])

    run(story)
