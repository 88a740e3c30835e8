"""The TCP relay: delivery in both directions, closing, and backpressure."""

import asyncio
from contextlib import asynccontextmanager

import pytest
import uvloop

from kafscale.broker.network.http import CHUNK_BYTES, relay
from unit.broker.harness import run, run_pending

every_loop = pytest.mark.parametrize(
    "loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


@asynccontextmanager
async def joined():
    """The outer sides of two relayed connections, and the relay task."""
    inner = asyncio.Queue()

    async def accept(reader, writer):
        await inner.put((reader, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=8 * 1024)
    address = server.sockets[0].getsockname()
    one, other = [await asyncio.open_connection(*address) for _ in range(2)]
    task = asyncio.ensure_future(relay(await inner.get(), await inner.get()))
    try:
        yield one, other, task
    finally:
        server.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for _, writer in (one, other):
            writer.close()


@every_loop
def test_bytes_are_relayed_in_both_directions(loop):
    async def scenario():
        async with joined() as ((first_inner, first_outer), (other_in, other_out), _):
            first_outer.write(b"question")
            assert await other_in.readexactly(8) == b"question"
            other_out.write(b"answer")
            assert await first_inner.readexactly(6) == b"answer"

    run(scenario, loop)


@every_loop
def test_sent_bytes_are_delivered_before_the_close(loop):
    async def scenario():
        async with joined() as ((_, first_outer), (other_in, _), task):
            first_outer.write(b"x" * 1_000_000)
            first_outer.close()
            assert len(await other_in.read(-1)) == 1_000_000
            await task

    run(scenario, loop)


@every_loop
def test_broken_connection_closes_the_other(loop):
    async def scenario():
        async with joined() as ((_, first_outer), (other_in, _), task):
            first_outer.transport.abort()
            assert await other_in.read() == b""
            await task

    run(scenario, loop)


class SlowWriter:
    """A writer that accepts nothing until the test allows it."""

    def __init__(self):
        self.takes = asyncio.Event()
        self.written = bytearray()

    def write(self, chunk):
        self.written += chunk

    async def drain(self):
        await self.takes.wait()

    def close(self):
        self.takes.set()


def test_reading_is_limited_by_the_other_side():
    async def scenario():
        source, silent = asyncio.StreamReader(), asyncio.StreamReader()
        slow, other = SlowWriter(), SlowWriter()
        source.feed_data(b"x" * 10 * CHUNK_BYTES)
        source.feed_eof()
        task = asyncio.ensure_future(relay((source, other), (silent, slow)))
        await run_pending(100)
        assert len(slow.written) == CHUNK_BYTES
        slow.takes.set()
        await task
        assert len(slow.written) == 10 * CHUNK_BYTES

    run(scenario)
