"""The console as an ASGI application: the API behind its door, the pages, metrics and health.

The law: every answer, whoever makes it, carries the guarding headers; every request of the API gets
past the door before anything else happens, and ends within a time limit.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount
from starlette.routing import Route as HttpRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kafscale.console.api.route import Call, Route
from kafscale.console.api.routes import PREFIX, TABLE
from kafscale.console.context import Room
from kafscale.console.http import csrf_and_access, request_body, responses
from kafscale.console.http.auth import Door
from kafscale.console.http.metrics import metrics
from kafscale.console.http.security_headers import NEVER_KEPT, guarding
from kafscale.console.http.sessions import SignedIn
from kafscale.console.http.static_files import DIRECTORY, pages
from kafscale.observability.logging import get_logger

log = get_logger(__name__)

SECONDS_MAX: Final = 30.0
SLOW_SECONDS_MAX: Final = 660.0
"""For what a cluster may take its time for, such as a drain."""
STREAM: Final = "stream"
SLOW: Final = "slow"

_METHODS: Final = ("GET", "POST", "PUT", "DELETE")
_HOST: Final = re.compile(r"[0-9A-Za-z.:\[\]%_-]{1,255}")

Endpoint = Callable[[Request], Awaitable[Response]]


def application(
    room: Room, door: Door, stopping: asyncio.Event, *, static: Path = DIRECTORY
) -> ASGIApp:
    """All that is served; who listens to events is let go as soon as it is `stopping`."""
    return _Guarded(
        Starlette(
            routes=[
                HttpRoute("/healthz", _is_alive),
                HttpRoute("/metrics", partial(metrics, room.runs)),
                HttpRoute(f"{PREFIX}/session", _caught(_timely(door.session)), methods=_METHODS),
                *(
                    HttpRoute(
                        PREFIX + each.path,
                        _endpoint(each, room, door, stopping),
                        methods=[each.method],
                    )
                    for each in TABLE
                ),
                HttpRoute("/api{rest:path}", _caught(_unknown(door)), methods=_METHODS),
                Mount("/", pages(static)),
            ],
            exception_handlers={HTTPException: _plain},
        ),
        guarding(over_tls=door.is_over_tls),
    )


class _Guarded:
    """Refuses what no browser sends, and adds the headers that browsers guard us by."""

    def __init__(self, app: ASGIApp, headers: dict[str, str]) -> None:
        self._app = app
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        app = self._app
        if not _HOST.fullmatch(Headers(scope=scope).get("host", "")):
            app = responses.problem(400, "invalid-request", "The header Host names no host.")
        await app(scope, receive, send_guarded)


def _endpoint(route: Route, room: Room, door: Door, stopping: asyncio.Event) -> Endpoint:
    seconds_max = SLOW_SECONDS_MAX if SLOW in route.tags else SECONDS_MAX

    async def answer(request: Request) -> Response:
        found = door.judge(request)
        if not isinstance(found, SignedIn):
            return responses.refusal(found or csrf_and_access.SIGNED_OUT)
        if request.method == "HEAD" and STREAM in route.tags:
            return responses.view(None)  # There is no end of it that could be waited for.
        async with asyncio.timeout(seconds_max):
            told = await route.handle(room, await _call(route, request))
        if route.method != "GET":
            log.info("changed", by=found.username, method=route.method, path=request.url.path)
        if STREAM in route.tags:
            return _streamed(told, lambda: door.goes_on(found), stopping)
        return responses.view(told if route.gives is not None else None)

    return _caught(answer)


async def _call(route: Route, request: Request) -> Call:
    return Call(
        path=request.path_params,
        query=None
        if route.query is None
        else request_body.query(request.query_params, route.query),
        body=None if route.takes is None else await request_body.body(request, route.takes),
    )


def _streamed(
    events: AsyncGenerator[bytes, None], goes_on: Callable[[], bool], stopping: asyncio.Event
) -> Response:
    """Events as they come, as long as the session goes on and the console runs."""

    async def while_wanted() -> AsyncIterator[bytes]:
        async with aclosing(events):
            stopped = asyncio.ensure_future(stopping.wait())
            newest = asyncio.ensure_future(anext(events, None))
            try:
                while True:
                    await asyncio.wait({newest, stopped}, return_when=asyncio.FIRST_COMPLETED)
                    event = newest.result() if newest.done() else None
                    if event is None or not goes_on():
                        break
                    yield event
                    newest = asyncio.ensure_future(anext(events, None))
            finally:
                for waiting in (stopped, newest):
                    waiting.cancel()
                await asyncio.gather(stopped, newest, return_exceptions=True)

    headers = {"Cache-Control": NEVER_KEPT, "X-Accel-Buffering": "no"}
    return StreamingResponse(while_wanted(), headers=headers, media_type="text/event-stream")


def _caught(endpoint: Endpoint) -> Endpoint:
    """An endpoint whose errors are answers."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever asked is told.
            return responses.failure(error, request.url.path)

    return answer


def _timely(endpoint: Endpoint) -> Endpoint:
    async def answer(request: Request) -> Response:
        async with asyncio.timeout(SECONDS_MAX):
            return await endpoint(request)

    return answer


def _unknown(door: Door) -> Endpoint:
    async def answer(request: Request) -> Response:
        found = door.judge(request)
        if not isinstance(found, SignedIn):
            return responses.refusal(found or csrf_and_access.SIGNED_OUT)
        return responses.problem(404, "not-found", "The API has nothing of this name and method.")

    return answer


async def _is_alive(_: Request) -> Response:
    return PlainTextResponse("ok\n", headers={"Cache-Control": NEVER_KEPT})


async def _plain(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return responses.problem(error.status_code, "refused", f"{error.detail}.")
