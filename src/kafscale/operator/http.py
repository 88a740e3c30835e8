"""The operator's HTTP endpoint: metrics, liveness and readiness.

A standby operator is ready too: it is ready to take over.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from kafscale.observability.metrics.operator import OperatorMetrics
from kafscale.observability.metrics.text_format import CONTENT_TYPE


@asynccontextmanager
async def serving(host: str, port: int, metrics: OperatorMetrics) -> AsyncIterator[int]:
    """Serve until the block ends; yields the bound port."""

    async def scrape(_: web.Request) -> web.Response:
        return web.Response(body=metrics.exposition(), headers={"Content-Type": CONTENT_TYPE})

    async def health(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    application = web.Application()
    application.add_routes(
        [
            web.get("/metrics", scrape),
            web.get("/health", health),
            web.get("/healthz", health),
            web.get("/readyz", health),
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
