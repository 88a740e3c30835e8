"""A link to a server on this machine that is as slow as a long way: every byte comes late.

    with slow_link(port, delay_s=0.1) as nearer_port:
        ...

    delay = Delay(0.1)
    with slow_link(port, delay) as nearer_port:
        delay.seconds = 3

Bytes are delayed each way and never held up by others, so that it is latency and not bandwidth that
is simulated.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

READ_BYTES = 1 << 18
CHUNKS_MAX = 1000


class Delay:
    """How far away the other end is, in each direction; it may change at any time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


@contextmanager
def slow_link(port: int, delay: Delay | None = None, *, delay_s: float = 0.0) -> Iterator[int]:
    """A port behind which lies another, `delay_s` away in each direction."""
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
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.TaskGroup() as group:
                group.create_task(_carry(reader, far_writer, delay))
                group.create_task(_carry(far_reader, writer, delay))

    return await asyncio.start_server(link, "127.0.0.1", 0)


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: Delay) -> None:
    """Hand on what comes, each piece after its delay, until there is no more."""
    loop = asyncio.get_running_loop()
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_MAX)

    async def deliver() -> None:
        while True:
            due, data = await under_way.get()
            await asyncio.sleep(due - loop.time())
            if not data:
                return
            writer.write(data)
            await writer.drain()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(deliver())
            data = b"begun"
            while data:
                data = await reader.read(READ_BYTES)
                await under_way.put((loop.time() + delay.seconds, data))
    except* ConnectionError:
        pass
    finally:
        writer.close()


async def _close(server: asyncio.Server) -> None:
    """Stop listening, and break off what is still open."""
    server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
