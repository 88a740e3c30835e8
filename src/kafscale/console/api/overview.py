"""The overview of the cluster, once or as server-sent events.

| event | data |
|---|---|
| `overview` | the overview after each poll |
| `problem` | why there will be no more events |

A slow reader misses overviews, and never delays another reader. Comments are sent as keep-alives,
since proxies close connections without traffic.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from kafscale.console.api.route import ApiContext, ApiRequest, Route
from kafscale.console.schema.base import Problem
from kafscale.console.schema.cluster import Overview
from kafscale.errors import OverloadedError

KEEP_ALIVE_SECONDS: Final = 15.0
_KEEP_ALIVE: Final = b": alive\n\n"


async def show(context: ApiContext, _: ApiRequest) -> msgspec.Raw:
    """The newest overview; polls the cluster if there is none yet."""
    if context.monitor.overview is None:
        await context.monitor.refresh()
    encoded = context.monitor.overview_json
    assert encoded is not None, "a refresh stores an overview"
    return msgspec.Raw(encoded)


async def events(context: ApiContext, _: ApiRequest) -> AsyncIterator[bytes]:
    return _events(context)


async def _events(context: ApiContext) -> AsyncIterator[bytes]:
    try:
        async with context.monitor.subscribe() as updates:
            newest = asyncio.ensure_future(anext(updates))
            try:
                while True:
                    done, _ = await asyncio.wait({newest}, timeout=KEEP_ALIVE_SECONDS)
                    if not done:
                        yield _KEEP_ALIVE
                        continue
                    yield _event("overview", _encoded(context, newest.result()))
                    newest = asyncio.ensure_future(anext(updates))
            finally:
                newest.cancel()
    except OverloadedError as error:
        problem = Problem(error="overloaded", message=str(error))
        yield _event("problem", msgspec.json.encode(problem))


def _encoded(context: ApiContext, overview: Overview) -> bytes:
    """The newest overview is encoded once for all readers."""
    newest = context.monitor.overview_json
    if newest is not None and context.monitor.overview is overview:
        return newest
    return msgspec.json.encode(overview)


def _event(name: str, data: bytes) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


ROUTES = (
    Route("GET", "/overview", show, response=Overview),
    Route("GET", "/events", events, response=Overview, tags=("stream",)),
)
