"""What the operator says of itself over HTTP: metrics, and whether it is alive and ready.

A stand-by is ready, too: it is ready to take over.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from kafscale.observability.metrics.operator import OperatorMetrics
from kafscale.observability.metrics.text_format import CONTENT_TYPE


@asynccontextmanager
async def serving(host: str, port: int, metrics: OperatorMetrics) -> AsyncIterator[int]:
    """Serve; the port is given."""

    async def show(_: web.Request) -> web.Response:
        return web.Response(body=metrics.exposition(), headers={"Content-Type": CONTENT_TYPE})

    async def is_alive(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    application = web.Application()
    application.add_routes(
        [
            web.get("/metrics", show),
            web.get("/health", is_alive),
            web.get("/healthz", is_alive),
            web.get("/readyz", is_alive),
        ]
    )
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
