"""Connections without a request are closed in time, others are not."""

import asyncio
from contextlib import asynccontextmanager

import uvicorn
from starlette.responses import PlainTextResponse

from kafscale.net.asgi_server import RequestTimeoutProtocol
from services.process import free_port


class ShortTimeoutProtocol(RequestTimeoutProtocol):
    seconds_max = 0.3


async def slow(scope, receive, send):
    await asyncio.sleep(1)
    await PlainTextResponse("done")(scope, receive, send)


@asynccontextmanager
async def connection():
    config = uvicorn.Config(
        slow,
        port=free_port(),
        http=ShortTimeoutProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server._serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it.
        await asyncio.sleep(0.01)
    reader, writer = await asyncio.open_connection("127.0.0.1", config.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        server.should_exit = True
        await serving


def run_with_connection(body):
    async def connected():
        async with connection() as (reader, writer):
            await body(reader, writer)

    asyncio.run(asyncio.wait_for(connected(), 15))


def test_silent_connection_is_closed():
    async def silent(reader, _):
        assert await reader.read() == b""

    run_with_connection(silent)


def test_slow_headers_do_not_extend_the_deadline():
    async def trickling(reader, writer):
        reading = asyncio.create_task(reader.read())
        sent_bytes = 0
        while not reading.done():
            writer.write(b"G")
            sent_bytes += 1
            await asyncio.sleep(0.05)
        assert 3 < sent_bytes < 100

    run_with_connection(trickling)


def test_slow_response_is_not_interrupted():
    async def asking(reader, writer):
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            assert await reader.readexactly(4) == b"done"

    run_with_connection(asking)
