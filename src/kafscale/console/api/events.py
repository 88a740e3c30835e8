"""What is seen of the cluster as it happens: server-sent events, one a look.

| event | data |
|---|---|
| `overview` | the cluster on one page, as of a look |
| `problem` | why there will be no more events |

The law: whoever reads slowly misses looks, and never holds up another. While nothing is to be told,
a comment says now and then that the line is alive: what stands in between would cut it else.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from kafscale.console.api.route import Call, Route
from kafscale.console.context import Room
from kafscale.console.schema.base import Problem
from kafscale.console.schema.cluster import Overview
from kafscale.errors import OverloadedError

ALIVE_SECONDS: Final = 15.0
_ALIVE: Final = b": alive\n\n"


async def events(room: Room, _: Call) -> AsyncIterator[bytes]:
    return _events(room)


async def _events(room: Room) -> AsyncIterator[bytes]:
    try:
        async with room.watch.subscribe() as news:
            newest = asyncio.ensure_future(anext(news))
            try:
                while True:
                    done, _ = await asyncio.wait({newest}, timeout=ALIVE_SECONDS)
                    if not done:
                        yield _ALIVE
                        continue
                    yield _event("overview", _encoded(room, newest.result()))
                    newest = asyncio.ensure_future(anext(news))
            finally:
                newest.cancel()
    except OverloadedError as error:
        problem = Problem(error="overloaded", message=str(error))
        yield _event("problem", msgspec.json.encode(problem))


def _encoded(room: Room, told: Overview) -> bytes:
    """What most want is the newest, which is encoded once for all of them."""
    newest = room.watch.overview_json
    if newest is not None and room.watch.overview is told:
        return newest
    return msgspec.json.encode(told)


def _event(name: str, data: bytes) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


ROUTES = (Route("GET", "/events", events, gives=Overview, tags=("stream",)),)
