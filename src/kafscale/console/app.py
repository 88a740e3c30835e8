"""The console as an ASGI application: API, web pages, metrics and health check.

Invariants: every response has the security headers. Every API request passes the access check
before anything else happens, and ends within a time limit.
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

from kafscale.admin import jobs
from kafscale.aio.clock import clock
from kafscale.console.api import (
    access,
    brokers,
    etcd,
    groups,
    messages,
    overview,
    pipeline,
    topics,
    transactions,
)
from kafscale.console.api.route import ApiContext, ApiRequest, JobRunCache, Route
from kafscale.console.http import requests, responses
from kafscale.console.http.auth import Authenticator
from kafscale.console.http.responses import NO_STORE, security_headers
from kafscale.console.http.sessions import LoginSession
from kafscale.console.http.static_files import DIRECTORY, static_app
from kafscale.errors import ConfigError, KafscaleError
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.jobs import PipelineStatus, exposition
from kafscale.observability.metrics.metric import CONTENT_TYPE

logger = get_logger(__name__)

SECONDS_MAX: Final = 30.0
SLOW_SECONDS_MAX: Final = 660.0
"""For operations such as a drain."""
STREAM: Final = "stream"
SLOW: Final = "slow"

PREFIX: Final = "/api/v1"

ALL_ROUTES: Final[tuple[Route, ...]] = (
    *overview.ROUTES,
    *brokers.ROUTES,
    *topics.ROUTES,
    *messages.ROUTES,
    *groups.ROUTES,
    *transactions.ROUTES,
    *access.ROUTES,
    *pipeline.ROUTES,
    *etcd.ROUTES,
)
"""All routes of the API except those of the session."""

_METHODS: Final = ("GET", "POST", "PUT", "DELETE")
_HOST: Final = re.compile(r"[0-9A-Za-z.:\[\]%_-]{1,255}")

Endpoint = Callable[[Request], Awaitable[Response]]


def create_app(
    context: ApiContext,
    authenticator: Authenticator,
    stopping: asyncio.Event,
    *,
    static: Path = DIRECTORY,
) -> ASGIApp:
    """Build the application; event streams end when `stopping` is set."""
    return _SecurityMiddleware(
        Starlette(
            routes=[
                HttpRoute("/healthz", _healthz),
                HttpRoute("/metrics", partial(_metrics, context.job_runs)),
                HttpRoute(
                    f"{PREFIX}/session",
                    _with_error_responses(_with_timeout(authenticator.session)),
                    methods=_METHODS,
                ),
                *(
                    HttpRoute(
                        PREFIX + each.path,
                        _endpoint(each, context, authenticator, stopping),
                        methods=[each.method],
                    )
                    for each in ALL_ROUTES
                ),
                HttpRoute(
                    "/api{rest:path}",
                    _with_error_responses(_not_found(authenticator)),
                    methods=_METHODS,
                ),
                Mount("/", static_app(static)),
            ],
            exception_handlers={HTTPException: _http_error},
        ),
        security_headers(over_tls=authenticator.is_over_tls),
    )


class _SecurityMiddleware:
    """Rejects requests with an invalid Host header, and adds security headers."""

    def __init__(self, app: ASGIApp, headers: dict[str, str]) -> None:
        self._app = app
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        app = self._app
        if not _HOST.fullmatch(Headers(scope=scope).get("host", "")):
            app = responses.problem(400, "invalid-request", "Invalid Host header.")
        await app(scope, receive, send_with_headers)


def _endpoint(
    route: Route, context: ApiContext, authenticator: Authenticator, stopping: asyncio.Event
) -> Endpoint:
    seconds_max = SLOW_SECONDS_MAX if SLOW in route.tags else SECONDS_MAX

    async def handle(request: Request) -> Response:
        session = authenticator.check_access(request)
        if not isinstance(session, LoginSession):
            return responses.rejection(session or requests.SIGNED_OUT)
        if request.method == "HEAD" and STREAM in route.tags:
            return responses.success(None)  # The stream has no end.
        async with asyncio.timeout(seconds_max):
            result = await route.handle(context, await _api_request(route, request))
        if route.method != "GET":
            logger.info(
                "console change", by=session.username, method=route.method, path=request.url.path
            )
        if STREAM in route.tags:
            return _event_stream(result, lambda: authenticator.is_valid(session), stopping)
        return responses.success(result if route.response is not None else None)

    return _with_error_responses(handle)


async def _api_request(route: Route, request: Request) -> ApiRequest:
    return ApiRequest(
        path=request.path_params,
        query=None
        if route.query is None
        else requests.parse_query(request.query_params, route.query),
        body=None if route.body is None else await requests.read_body(request, route.body),
    )


def _event_stream(
    events: AsyncGenerator[bytes, None], is_valid: Callable[[], bool], stopping: asyncio.Event
) -> Response:
    """Stream events while the session is valid and the console runs."""

    async def stream() -> AsyncIterator[bytes]:
        async with aclosing(events):
            stopped = asyncio.ensure_future(stopping.wait())
            next_event = asyncio.ensure_future(anext(events, None))
            try:
                while True:
                    await asyncio.wait({next_event, stopped}, return_when=asyncio.FIRST_COMPLETED)
                    event = next_event.result() if next_event.done() else None
                    if event is None or not is_valid():
                        break
                    yield event
                    next_event = asyncio.ensure_future(anext(events, None))
            finally:
                for task in (stopped, next_event):
                    task.cancel()
                await asyncio.gather(stopped, next_event, return_exceptions=True)

    headers = {"Cache-Control": NO_STORE, "X-Accel-Buffering": "no"}
    return StreamingResponse(stream(), headers=headers, media_type="text/event-stream")


def _with_error_responses(endpoint: Endpoint) -> Endpoint:
    """Turn exceptions of an endpoint into responses."""

    async def handle(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as error:  # noqa: BLE001 - every error becomes a response.
            return responses.error_response(error, request.url.path)

    return handle


def _with_timeout(endpoint: Endpoint) -> Endpoint:
    async def handle(request: Request) -> Response:
        async with asyncio.timeout(SECONDS_MAX):
            return await endpoint(request)

    return handle


def _not_found(authenticator: Authenticator) -> Endpoint:
    async def handle(request: Request) -> Response:
        session = authenticator.check_access(request)
        if not isinstance(session, LoginSession):
            return responses.rejection(session or requests.SIGNED_OUT)
        return responses.problem(404, "not-found", "The API has no such path or method.")

    return handle


async def _metrics(runs: JobRunCache, _: Request) -> Response:
    """The results of pipeline jobs, which no broker knows; 503 if the bucket cannot be read."""
    try:
        by_job = await runs.by_job()
    except ConfigError:
        by_job = {}  # There is no bucket to read, so no job has run.
    except (KafscaleError, TimeoutError):
        return PlainTextResponse("cannot read the run records of jobs\n", status_code=503)
    text = exposition(PipelineStatus.of(clock(), jobs.last_runs(by_job)))
    return Response(text, headers={"Content-Type": CONTENT_TYPE, "Cache-Control": NO_STORE})


async def _healthz(_: Request) -> Response:
    return PlainTextResponse("ok\n", headers={"Cache-Control": NO_STORE})


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return responses.problem(error.status_code, "refused", f"{error.detail}.")
