"""A proxy to a server on this machine, which injects faults.

This one knows connections and bytes, and nothing of what they mean; `http_link` knows requests.

* A port is the link's own from first to last: while connections are refused, it stays bound.
* What is held comes later and not never, in its order, even when its sender is gone: as a network
  does that was cut in two for a while.
"""

import asyncio
import contextlib
import random
import socket
import struct
from collections.abc import Callable

from services.link_fault import HEALTHY, Carried, Fault, Held

HOST = "127.0.0.1"
READ_BYTES = 1 << 18
CHUNKS_MAX = 1000
AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER with 0 seconds: closing the socket resets the connection."""


class Link:
    """One port, and the connections that go through it."""

    def __init__(self, upstream_port: int, chance: random.Random) -> None:
        self._upstream_port = upstream_port
        self._chance = chance
        self._placeholder = _bound(0)
        self.port = int(self._placeholder.getsockname()[1])
        self.fault = HEALTHY
        self._changed = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.carried = Carried()

    async def set(self, fault: Fault) -> None:
        """Misbehave like this from now on."""
        self.fault = fault
        self._changed.set()
        self._changed = asyncio.Event()
        if fault.refuses:
            self._stop_listening()
            self.break_off()
        else:
            await self.listen()

    async def listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, sock=_bound(self.port))

    def break_off(self) -> None:
        """Reset all connections that there are."""
        for writer in tuple(self._writers):
            reset(writer)

    async def close(self) -> None:
        self._stop_listening()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._placeholder.close()

    # --- for those who carry ------------------------------------------------------------------

    async def until(self, condition: Callable[[Fault], bool]) -> None:
        """Wait for a fault to which this applies."""
        while not condition(self.fault):
            await self._changed.wait()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A new connection to the server."""
        reader, writer = await asyncio.open_connection(HOST, self._upstream_port, limit=READ_BYTES)
        self._writers.add(writer)
        return reader, writer

    def drop(self, writer: asyncio.StreamWriter) -> None:
        self._writers.discard(writer)
        writer.close()

    def delay_s(self, fault: Fault) -> float:
        return self._chance.uniform(fault.delay_ms_min, fault.delay_ms_max) / 1000

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client until either side has had enough."""
        far_reader, far_writer = await self.connect()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._hand_on(reader, far_writer, "requests"))
                group.create_task(self._hand_on(far_reader, writer, "answers"))
        finally:
            self.drop(far_writer)

    async def _hand_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Held
    ) -> None:
        """Hand on what comes, each piece after its delay, until there is no more."""
        loop = asyncio.get_running_loop()
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_MAX)

        async def deliver() -> None:
            data = b"begun"
            while data:
                due, data = await under_way.get()
                await asyncio.sleep(due - loop.time())
                if self.fault.stops(way):
                    self.carried.held += 1
                    await self.until(lambda fault: not fault.stops(way))
                writer.write(data)
                await writer.drain()
            with contextlib.suppress(OSError):
                writer.write_eof()

        async with asyncio.TaskGroup() as group:
            group.create_task(deliver())
            data = b"begun"
            while data:
                data = await _read(reader)
                delay_s = self.delay_s(self.fault) if way == "requests" else 0
                await under_way.put((loop.time() + delay_s, data))

    # --- connections --------------------------------------------------------------------------

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.fault.refuses:
            reset(writer)  # It came in just before.
            return
        self.carried.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            await self.carry(reader, writer)
        except* (OSError, asyncio.IncompleteReadError):
            reset(writer)
        finally:
            self._tasks.discard(task)
            self.drop(writer)

    def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


async def _read(reader: asyncio.StreamReader) -> bytes:
    """What comes next; one who is gone has no more to say, but what it said is still handed on."""
    try:
        return await reader.read(READ_BYTES)
    except ConnectionError:
        return b""


def reset(writer: asyncio.StreamWriter) -> None:
    """Break a connection off in such a way that the other side notices."""
    connection = writer.get_extra_info("socket")
    if connection is not None and connection.fileno() >= 0:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    writer.transport.abort()


def _bound(port: int) -> socket.socket:
    """A socket that shares its port with others of ours, and may or may not listen."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((HOST, port))
    return bound
