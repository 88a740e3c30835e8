"""A proxy to a server on this machine, which injects faults.

This module forwards bytes; `http_link` parses requests.

* The port stays bound while connections are refused.
* Held bytes are delivered later, in order, even if their sender has closed the connection: as
  after a network partition.
"""

import asyncio
import contextlib
import random
import socket
import struct
from collections.abc import Callable

from services.link_fault import HEALTHY, Direction, Fault, LinkCounts

HOST = "127.0.0.1"
READ_BYTES = 1 << 18
CHUNKS_MAX = 1000
NO_LINGER = struct.pack("ii", 1, 0)
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
        self.counts = LinkCounts()

    async def set(self, fault: Fault) -> None:
        """Set the fault, until it is changed."""
        self.fault = fault
        self._changed.set()
        self._changed = asyncio.Event()
        if fault.refuses:
            self._stop_listening()
            self.reset_connections()
        else:
            await self.listen()

    async def listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, sock=_bound(self.port))

    def reset_connections(self) -> None:
        """Reset all open connections."""
        for writer in tuple(self._writers):
            reset(writer)

    async def close(self) -> None:
        self._stop_listening()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._placeholder.close()

    # --- forwarding ---------------------------------------------------------------------------

    async def wait_for_fault(self, condition: Callable[[Fault], bool]) -> None:
        """Wait until the condition holds for the current fault."""
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

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client until either side closes."""
        server_reader, server_writer = await self.connect()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._forward(reader, server_writer, "requests"))
                group.create_task(self._forward(server_reader, writer, "responses"))
        finally:
            self.drop(server_writer)

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: Direction
    ) -> None:
        """Forward every chunk after its delay, until the end of the stream."""
        loop = asyncio.get_running_loop()
        in_transit: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_MAX)

        async def deliver() -> None:
            data = b"start"
            while data:
                due, data = await in_transit.get()
                await asyncio.sleep(due - loop.time())
                if self.fault.stops(direction):
                    self.counts.held += 1
                    await self.wait_for_fault(lambda fault: not fault.stops(direction))
                writer.write(data)
                await writer.drain()
            with contextlib.suppress(OSError):
                writer.write_eof()

        async with asyncio.TaskGroup() as group:
            group.create_task(deliver())
            data = b"start"
            while data:
                data = await _read(reader)
                delay_s = self.delay_s(self.fault) if direction == "requests" else 0
                await in_transit.put((loop.time() + delay_s, data))

    # --- connections --------------------------------------------------------------------------

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.fault.refuses:
            reset(writer)  # It was accepted just before.
            return
        self.counts.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            await self.serve(reader, writer)
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
    """The next chunk; a lost connection is an end, so that earlier chunks are still delivered."""
    try:
        return await reader.read(READ_BYTES)
    except ConnectionError:
        return b""


def reset(writer: asyncio.StreamWriter) -> None:
    """Reset a connection, so that the peer gets an error."""
    connection = writer.get_extra_info("socket")
    if connection is not None and connection.fileno() >= 0:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
    writer.transport.abort()


def _bound(port: int) -> socket.socket:
    """A bound socket that shares its port with other sockets of this process."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((HOST, port))
    return bound
