"""From the bytes of a request to the bytes of its answer, by way of the handler of its API.

The laws:

* `dispatch` never raises. What cannot be answered (an API or version that is not served, bytes that
  are not what they claim to be) is logged and closes its connection, and nothing else.
* Errors become answers here and nowhere else. An error of ours carries its Kafka code; any other is
  a defect: logged with its traceback, counted, and told to the client as -1. No error is ever told
  by a body that reads as a success.
* A request whose handler answers at once costs no task and no future.
* Every request that waits ends: by its own time limit, or by the broker's.
* Who has to log in and has not is served nothing but what logging in takes (`login`).

ApiVersions is served here, because what it tells is this table. Sockets, and the order of answers,
are left to `connection`.
"""

import asyncio
import re
from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final

from kafscale.broker.requests.context import ClientInfo, Drain, RequestContext
from kafscale.broker.requests.route import Route, route
from kafscale.broker.requests.versioned_api import Endpoint, Parts
from kafscale.broker.security.quotas import Throttling
from kafscale.broker.security.sasl_login import Login
from kafscale.errors import (
    AuthenticationError,
    InvalidRequestError,
    KafscaleError,
    OverloadedError,
    ProtocolError,
    UnknownApiError,
)
from kafscale.observability.log_limiter import RateLimitedLogger
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.broker import Metrics
from kafscale.protocol import header as headers
from kafscale.protocol.api import Api
from kafscale.protocol.apis import api_versions_response
from kafscale.protocol.codec.wire import Message
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.frame import LENGTH, frame
from kafscale.protocol.messages.api_versions import (
    API_VERSIONS,
    ApiVersionsRequest,
    ApiVersionsResponse,
)

if TYPE_CHECKING:
    from kafscale.broker.services import Services

log = get_logger(__name__)

_UNFORESEEN: Final = ErrorCode.UNKNOWN_SERVER_ERROR.message
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


class Pending:
    """An answer that is awaited; `notify` is called once it is there."""

    __slots__ = ("done", "notify", "parts")

    def __init__(self) -> None:
        self.done = False
        self.parts: Parts | None = None
        """None closes the connection."""
        self.notify: Callable[[], None] = _nobody

    def client_left(self) -> None:
        """Nobody awaits the answer any more."""
        self.notify = _nobody

    def finish(self, parts: Parts | None) -> None:
        self.parts = parts
        self.done = True
        self.notify()


class Waiting(Pending):
    """The answer to a request that is being served."""

    __slots__ = ("context", "deadline", "endpoint", "future", "left", "request")

    def __init__(
        self,
        endpoint: Endpoint,
        context: RequestContext,
        request: Message,
        future: asyncio.Future[Any],
        deadline: float,
    ) -> None:
        super().__init__()
        self.endpoint = endpoint
        self.context = context
        self.request = request
        self.future = future
        self.deadline = deadline
        self.left = False

    def client_left(self) -> None:
        """Nobody awaits the answer: end what only waits; let everything else finish."""
        super().client_left()
        self.left = True
        if self.endpoint.route.ends_with_client:
            self.future.cancel()


class Dispatcher:
    """Serves requests by their routes."""

    def __init__(
        self,
        routes: Iterable[Route],
        services: "Services",
        metrics: Metrics,
        drain: Drain,
        *,
        request_timeout_ms: int,
        clock: Callable[[], int],
        timer: Callable[[], float],
        throttling: Throttling | None = None,
    ) -> None:
        """Time is told by `clock`, in ms since 1970, and measured by `timer`, in seconds."""
        own = route(API_VERSIONS, self._api_versions)
        self._routes = {served.api.key: served for served in (own, *routes)}
        self._services = services
        self._throttling = throttling
        self._metrics = metrics
        self._drain = drain
        self._request_timeout_seconds = request_timeout_ms / 1000
        self._clock = clock
        self._timer = timer
        self._by_number: dict[int, Endpoint] = {}
        self.strangers = RateLimitedLogger(clock)
        """Keeps what is told of clients that nobody knows within bounds."""
        # Tasks are only weakly held by their event loop: this keeps them, and counts them.
        self._waiting: set[Waiting] = set()

    @property
    def served(self) -> list[Api[Any, Any]]:
        """The APIs that clients may use, which is what they are told."""
        return [served.api for served in self._routes.values()]

    @property
    def waiting_count(self) -> int:
        """How many requests have been begun and not answered."""
        return len(self._waiting)

    def dispatch(self, client: ClientInfo, request_frame: memoryview) -> Parts | Pending | None:
        """Serve one request: its answer, or the wait for it; None means: close the connection."""
        started = self._timer()
        login = client.login
        if login is not None:
            if login.is_bare:
                return _take_token(client, login, request_frame)
            if not login.admits(int.from_bytes(request_frame[:2], "big")):
                self._tell_stranger(client, request_frame)
                return None
        try:
            # The API key and the version are the first two int16 of every header.
            number = int.from_bytes(request_frame[:4], "big")
            endpoint = self._by_number.get(number) or self._endpoint(request_frame)
            asked, request = endpoint.read(request_frame)
        except ProtocolError as error:
            return self._unreadable(client, request_frame, error)
        context = RequestContext(
            client,
            asked.client_id,
            endpoint.api,
            endpoint.version,
            asked.correlation_id,
            self._clock(),
            started,
            self._services,
            self._drain,
            len(request_frame),
        )
        try:
            result = endpoint.handle(context, request)
            if result is None or isinstance(result, Message):
                return self._answer(endpoint, context, result)
            future = asyncio.ensure_future(result)
            context.busy_seconds = self._timer() - started
        except Exception as error:  # noqa: BLE001 - an edge: whatever it is, it is answered.
            return self._refuse(endpoint, context, request, error)
        return self._wait(endpoint, context, request, future)

    def expire(self) -> None:
        """End the requests whose time is over. To be called now and then."""
        now = self._timer()
        for waiting in [waiting for waiting in self._waiting if waiting.deadline <= now]:
            waiting.future.cancel()

    def _endpoint(self, request_frame: memoryview) -> Endpoint:
        key, version = headers.peek_api(request_frame)
        served = self._routes.get(key)
        if served is None:
            raise UnknownApiError(f"API key {key} is not served")
        endpoint = Endpoint(served, version, self._metrics)
        self._by_number[int.from_bytes(request_frame[:4], "big")] = endpoint
        return endpoint

    def _wait(
        self,
        endpoint: Endpoint,
        context: RequestContext,
        request: Message,
        future: asyncio.Future[Any],
    ) -> Waiting:
        limit = inf if endpoint.route.brings_time_limit else self._request_timeout_seconds
        waiting = Waiting(endpoint, context, request, future, context.started + limit)
        self._waiting.add(waiting)
        future.add_done_callback(partial(self._settle, waiting))
        return waiting

    def _settle(self, waiting: Waiting, future: asyncio.Future[Any]) -> None:
        self._waiting.discard(waiting)
        endpoint, context = waiting.endpoint, waiting.context
        # Asked for its error, and not for its result: what is raised holds on to this frame, which
        # holds the future, which holds the error, and such circles stop everybody in the end.
        if not future.cancelled():
            problem = future.exception()
        elif waiting.left:
            return
        else:
            problem = OverloadedError("the request was not finished in time")
        try:
            parts = (
                self._answer(endpoint, context, future.result())
                if problem is None
                else self._refuse(endpoint, context, waiting.request, problem)
            )
        except Exception as error:  # noqa: BLE001 - the same edge, later.
            parts = self._refuse(endpoint, context, waiting.request, error)
        waiting.finish(parts)

    def _answer(
        self, endpoint: Endpoint, context: RequestContext, response: Message | None
    ) -> Parts:
        if self._throttling is not None and not self._throttling.is_idle:
            self._throttle(self._throttling, context, response)
        parts = [] if response is None else endpoint.write(context.correlation_id, response)
        endpoint.traffic.answered(self._timer() - context.started)
        return parts

    def _throttle(
        self, throttling: Throttling, context: RequestContext, response: Message | None
    ) -> None:
        """Have the connection left alone for as long as the quotas of its client say."""
        # A request that had to wait was worked on before it began to; what came after is little.
        busy_seconds = context.busy_seconds or self._timer() - context.started
        throttled_ms = throttling.charge(context, response, busy_seconds)
        if throttled_ms:
            context.client.throttled_ms = max(context.client.throttled_ms, throttled_ms)
            if response is not None and "throttle_time_ms" in response.__struct_fields__:
                response.throttle_time_ms = throttled_ms  # type: ignore[attr-defined]

    def _refuse(
        self, endpoint: Endpoint, context: RequestContext, request: Message, error: BaseException
    ) -> Parts | None:
        told = error if isinstance(error, KafscaleError) else KafscaleError(_UNFORESEEN)
        name = ErrorCode.of(told.code).name
        endpoint.traffic.refused(name, self._timer() - context.started)
        facts = _facts(context.client, endpoint.api.key, endpoint.version, context.client_id)
        if told.code == ErrorCode.UNKNOWN_SERVER_ERROR:
            log.error("request failed", **facts, api=endpoint.api.name, exc_info=error)
        else:
            log.debug("request refused", **facts, api=endpoint.api.name, error=name)
        try:
            response = endpoint.route.refuse(context, request, told)
            if self._throttling is not None and not self._throttling.is_idle:
                self._throttle(self._throttling, context, response)
            if response is not None:
                return endpoint.write(context.correlation_id, response)
        except Exception:
            log.exception("request cannot be refused", **facts, api=endpoint.api.name)
        self.strangers.warn(log, "connection closed without an answer", **facts, error=name)
        return None

    def _unreadable(
        self, client: ClientInfo, request_frame: memoryview, error: ProtocolError
    ) -> Parts | None:
        """What to do about bytes that are no request of ours."""
        key = version = None
        client_id = None
        try:
            key, version = headers.peek_api(request_frame)
            # Up to the client's name, all headers read the same: it is there for moments like this.
            asked, _ = headers.decode_request_header(request_frame, 1)
            client_id = asked.client_id
            if key == API_VERSIONS.key and version not in API_VERSIONS.versions:
                # The only request for which a client may try a version: answered in v0 (KIP-511).
                ranges = api_versions_response(self.served)
                ranges.error_code = ErrorCode.UNSUPPORTED_VERSION
                return frame(
                    headers.encode_response_header(asked.correlation_id, 0),
                    API_VERSIONS.response_codec(0).encode(ranges),
                )
        except ProtocolError:
            pass  # The header itself is unreadable; the first error says enough.
        facts = _facts(client, key, version, client_id)
        self.strangers.warn(log, "unreadable request", **facts, reason=str(error))
        return None

    def _tell_stranger(self, client: ClientInfo, request_frame: memoryview) -> None:
        """Tell of somebody who asks for something without being logged in, or not any more."""
        is_known = client.login is not None and client.login.identity is not None
        self.strangers.warn(
            log,
            "request after the end of a session" if is_known else "request without a login",
            client=str(client),
            listener=client.listener.name,
            principal=client.identity.full_name,
            api_key=int.from_bytes(request_frame[:2], "big"),
        )

    def _api_versions(
        self, context: RequestContext, request: ApiVersionsRequest
    ) -> ApiVersionsResponse:
        if context.version >= 3:
            name, version = request.client_software_name, request.client_software_version
            if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version)):
                raise InvalidRequestError("the client's software has a name that may not be")
            context.client.software_name = name
            context.client.software_version = version
        return api_versions_response(self.served)


def _take_token(client: ClientInfo, login: Login, token: memoryview) -> Parts | Pending:
    """Answer a token that came without a header by one, as after SaslHandshake v0."""
    try:
        return [LENGTH.pack(len(answer := login.authenticate(client, bytes(token)).token)), answer]
    except AuthenticationError:
        # There is no way to say it; the connection is closed, after the same while as for others.
        silence = Pending()
        delay_seconds = (login.delay_ms or 0) / 1000
        asyncio.get_running_loop().call_later(delay_seconds, silence.finish, None)
        return silence


def _nobody() -> None:
    """Be called in place of a connection that is gone."""


def _facts(
    client: ClientInfo, key: int | None, version: int | None, client_id: str | None
) -> dict[str, Any]:
    return {"client": str(client), "client_id": client_id, "api_key": key, "version": version}
