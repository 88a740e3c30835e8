"""A proxy to a server on this machine, which injects faults.

This module forwards bytes; `http_link` parses requests.

* The port stays bound while connections are refused.
* Held bytes are delivered later, in order, even if their sender has closed the connection: as
  after a network partition.
* Late bytes are delivered after their sender got a reset, on the same connection to the server,
  which stays open for a while so that the server executes them.
"""

import asyncio
import contextlib
import random
import socket
import struct
from collections.abc import Callable, Coroutine, Iterator

from services.link_fault import HEALTHY, Direction, Fault, LinkCounts

HOST = "127.0.0.1"
READ_BYTES = 1 << 18
LATE_RESET_S = 0.3
"""The time from the first late byte to the reset: the bytes of one request may come in parts."""
LATE_OPEN_S = 3.0
"""How long the connection to the server stays open after late bytes. A server cancels requests
whose connection is closed."""
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

    def start_task(self, work: Coroutine[None, None, None]) -> None:
        """Start a task that ends with the link."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def drop(self, writer: asyncio.StreamWriter) -> None:
        self._writers.discard(writer)
        writer.close()

    def delay_s(self, fault: Fault) -> float:
        return self._chance.uniform(fault.delay_ms_min, fault.delay_ms_max) / 1000

    def is_late(self, fault: Fault) -> bool:
        return self._chance.random() < fault.late_share

    def late_s(self, fault: Fault) -> float:
        return self._chance.uniform(fault.late_ms_min, fault.late_ms_max) / 1000

    @contextlib.contextmanager
    def late_request(self) -> Iterator[None]:
        """Count a late request, which is pending until the block ends."""
        self.counts.late += 1
        self.counts.late_pending += 1
        try:
            yield
        finally:
            self.counts.late_pending -= 1

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client until either side closes."""
        server_reader, server_writer = await self.connect()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._forward_requests(reader, writer, server_writer))
                group.create_task(self._forward_responses(server_reader, writer))
        finally:
            self.drop(server_writer)

    async def _forward_requests(
        self,
        reader: asyncio.StreamReader,
        client_writer: asyncio.StreamWriter,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Forward every chunk after its delay, until the end of the stream or a late chunk."""
        in_transit: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_MAX)
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            delivery = group.create_task(self._deliver(in_transit, writer, "requests"))
            data = b"start"
            while data:
                data = await _read(reader)
                fault = self.fault
                if data and self.is_late(fault):
                    break
                await in_transit.put((loop.time() + self.delay_s(fault), data))
            if not data:
                return
            with self.late_request():
                data += await _read_for(reader, LATE_RESET_S)
                reset(client_writer)
                self._writers.discard(writer)  # Later resets do not affect late bytes.
                due = loop.time() + self.late_s(fault)
                await in_transit.put((due, data))
                await in_transit.put((due + LATE_OPEN_S, b""))
                await asyncio.wait([delivery])

    async def _forward_responses(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Forward every chunk, until the end of the stream; drop those that the client does not
        wait for, because the server may still have to receive requests.
        """
        in_transit: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_MAX)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._deliver(in_transit, writer, "responses"))
            data = b"start"
            while data:
                data = await _read(reader)
                await in_transit.put((0, data))

    async def _deliver(
        self,
        in_transit: asyncio.Queue[tuple[float, bytes]],
        writer: asyncio.StreamWriter,
        direction: Direction,
    ) -> None:
        """Deliver chunks when they are due; an empty chunk ends the stream."""
        loop = asyncio.get_running_loop()
        data = b"start"
        while data:
            due, data = await in_transit.get()
            await asyncio.sleep(due - loop.time())
            if self.fault.stops(direction):
                self.counts.held += 1
                await self.wait_for_fault(lambda fault: not fault.stops(direction))
            if direction == "responses" and writer.is_closing():
                continue
            writer.write(data)
            try:
                await writer.drain()
            except ConnectionError:
                if direction == "requests":
                    raise
        with contextlib.suppress(OSError):
            writer.write_eof()

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


async def _read_for(reader: asyncio.StreamReader, seconds: float) -> bytes:
    """Everything that arrives within this time."""
    chunks = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while data := await _read(reader):
                chunks.append(data)
    return b"".join(chunks)


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
