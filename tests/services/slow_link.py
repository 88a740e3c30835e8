"""A link to a local server that simulates latency.

    with slow_link(port, delay_s=0.1) as link_port:
        ...

    delay = Delay(0.1)
    with slow_link(port, delay) as link_port:
        delay.seconds = 3

Bytes are delayed in each direction, independently of each other: latency is simulated, not
bandwidth.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

READ_BYTES = 1 << 18
CHUNKS_MAX = 1000


class Delay:
    """The latency in each direction; it may change at any time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


@contextmanager
def slow_link(port: int, delay: Delay | None = None, *, delay_s: float = 0.0) -> Iterator[int]:
    """Yield a port that forwards to `port`, with a latency in each direction."""
    delay = delay or Delay(delay_s)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        opening = asyncio.run_coroutine_threadsafe(_listen(port, delay), loop)
        server = opening.result(10)
        yield int(server.sockets[0].getsockname()[1])
        asyncio.run_coroutine_threadsafe(_close(server), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _listen(port: int, delay: Delay) -> asyncio.Server:
    async def link(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.CancelledError):
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.TaskGroup() as group:
                group.create_task(_forward(reader, server_writer, delay))
                group.create_task(_forward(server_reader, writer, delay))

    return await asyncio.start_server(link, "127.0.0.1", 0)


async def _forward(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: Delay
) -> None:
    """Forward every chunk after its delay, until the end of the stream."""
    loop = asyncio.get_running_loop()
    in_transit: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_MAX)

    async def deliver() -> None:
        while True:
            due, data = await in_transit.get()
            await asyncio.sleep(due - loop.time())
            if not data:
                return
            writer.write(data)
            await writer.drain()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(deliver())
            data = b"start"
            while data:
                data = await reader.read(READ_BYTES)
                await in_transit.put((loop.time() + delay.seconds, data))
    except* ConnectionError:
        pass
    finally:
        writer.close()


async def _close(server: asyncio.Server) -> None:
    """Stop listening, and close open connections."""
    server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
