"""`Dispatcher`: turns the bytes of a request into the bytes of its response, by its handler.

Invariants:

* `dispatch` never raises. A request that cannot be answered (an unknown API or version, malformed
  bytes) is logged and closes its connection, and nothing else.
* Only this module turns errors into responses. A `KafscaleError` carries its Kafka error code; any
  other exception is a defect: it is logged with its traceback, counted, and sent as error code -1.
  No error is sent as a response that reads as a success.
* A request whose handler responds immediately costs no task and no future.
* Every request that waits ends: by its own time limit, or by the broker's.
* A client that must authenticate and has not is served nothing but authentication (`sasl_login`).

ApiVersions is served here, because its response is this module's table. `connection` owns the
socket and the order of responses.
"""

import asyncio
import re
from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final

from kafscale.broker import features
from kafscale.broker.requests.context import ClientInfo, RequestContext, ShutdownSignal
from kafscale.broker.requests.pending_response import InFlightRequest, PendingResponse
from kafscale.broker.requests.route import Parts, Route, VersionedApi, route
from kafscale.broker.security.quotas import ClientQuotas
from kafscale.broker.security.sasl_login import SaslSession
from kafscale.errors import (
    AuthenticationError,
    InvalidRequestError,
    KafscaleError,
    OverloadedError,
    ProtocolError,
    UnknownApiError,
)
from kafscale.observability.logging import RateLimitedLogger, get_logger
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
from kafscale.protocol.messages.produce import PRODUCE

if TYPE_CHECKING:
    from kafscale.broker.services import Services

logger = get_logger(__name__)

SOFTWARE_LENGTH_MAX: Final = 100
"""How much of a client's name and version is kept, for metrics."""

_UNEXPECTED_ERROR: Final = ErrorCode.UNKNOWN_SERVER_ERROR.message
_SOFTWARE_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


class Dispatcher:
    """Serves requests by their routes."""

    def __init__(
        self,
        routes: Iterable[Route],
        services: "Services",
        metrics: Metrics,
        shutdown: ShutdownSignal,
        *,
        request_timeout_ms: int,
        other_request_bytes_max: int,
        clock: Callable[[], int],
        timer: Callable[[], float],
        quotas: ClientQuotas | None = None,
    ) -> None:
        """`clock` returns ms since 1970; `timer` returns seconds and measures durations."""
        api_versions = route(API_VERSIONS, self._api_versions)
        self._routes = {each.api.key: each for each in (api_versions, *routes)}
        self._services = services
        self._quotas = quotas
        self._metrics = metrics
        self._shutdown = shutdown
        self._request_timeout_seconds = request_timeout_ms / 1000
        self._other_request_bytes_max = other_request_bytes_max
        self._clock = clock
        self._timer = timer
        self._versioned_apis: dict[int, VersionedApi] = {}
        """By the first four bytes of a request: API key and version."""
        self.unauthenticated_log = RateLimitedLogger(clock)
        """For events that unauthenticated clients can cause."""
        # An event loop holds its tasks weakly: this set keeps them alive, and counts them.
        self._in_flight: set[InFlightRequest] = set()

    @property
    def apis(self) -> list[Api[Any, Any]]:
        """The APIs that are served, as ApiVersions lists them."""
        return [each.api for each in self._routes.values()]

    def dispatch(
        self, client: ClientInfo, request_frame: memoryview
    ) -> Parts | PendingResponse | None:
        """Serve one request; returns its response, or None to close the connection."""
        started = self._timer()
        session = client.sasl_session
        if session is not None:
            if session.expects_raw_token:
                return _authenticate_raw_token(client, session, request_frame)
            if not session.allows(int.from_bytes(request_frame[:2], "big")):
                self._log_unauthenticated(client, request_frame)
                return None
        try:
            # The API key and the version are the first two int16 of every header.
            key_and_version = int.from_bytes(request_frame[:4], "big")
            versioned_api = self._versioned_apis.get(key_and_version) or self._versioned_api(
                request_frame
            )
            if len(request_frame) > self._other_request_bytes_max:
                self._check_size(versioned_api.api, len(request_frame))
            header, request = versioned_api.decode(request_frame)
        except ProtocolError as error:
            return self._reject_unreadable(client, request_frame, error)
        context = RequestContext(
            client,
            header.client_id,
            versioned_api.api,
            versioned_api.version,
            header.correlation_id,
            self._clock(),
            started,
            self._services,
            self._shutdown,
            len(request_frame),
        )
        try:
            result = versioned_api.handle(context, request)
            if result is None or isinstance(result, Message):
                return self._respond(versioned_api, context, result)
            future = asyncio.ensure_future(result)
            context.busy_seconds = self._timer() - started
        except Exception as error:  # noqa: BLE001 - every exception becomes an error response.
            return self._respond_with_error(versioned_api, context, request, error)
        return self._track(versioned_api, context, request, future)

    def expire(self) -> None:
        """End the requests that are past their deadline. To be called periodically."""
        now = self._timer()
        for in_flight in [each for each in self._in_flight if each.deadline <= now]:
            in_flight.future.cancel()

    def _versioned_api(self, request_frame: memoryview) -> VersionedApi:
        key, version = headers.peek_api(request_frame)
        api_route = self._routes.get(key)
        if api_route is None:
            raise UnknownApiError(f"API key {key} is not served")
        versioned_api = VersionedApi(api_route, version, self._metrics)
        self._versioned_apis[int.from_bytes(request_frame[:4], "big")] = versioned_api
        return versioned_api

    def _check_size(self, api: Api[Any, Any], size_bytes: int) -> None:
        """Only Produce requests may be large: the time that others take grows with their size."""
        if api.key != PRODUCE.key:
            raise ProtocolError(
                f"{api.name} request of {size_bytes} bytes exceeds the limit of"
                f" {self._other_request_bytes_max} bytes"
            )

    def _track(
        self,
        versioned_api: VersionedApi,
        context: RequestContext,
        request: Message,
        future: asyncio.Future[Any],
    ) -> InFlightRequest:
        limit = inf if versioned_api.route.has_own_timeout else self._request_timeout_seconds
        deadline = context.started + limit
        in_flight = InFlightRequest(versioned_api, context, request, future, deadline)
        self._in_flight.add(in_flight)
        future.add_done_callback(partial(self._complete, in_flight))
        return in_flight

    def _complete(self, in_flight: InFlightRequest, future: asyncio.Future[Any]) -> None:
        self._in_flight.discard(in_flight)
        versioned_api, context = in_flight.versioned_api, in_flight.context
        # Reads the exception instead of raising it: a raised one would refer to this frame, which
        # refers to the future, which refers to the exception. Collecting such reference cycles
        # stops all clients for a while.
        if not future.cancelled():
            problem = future.exception()
        elif in_flight.is_abandoned:
            return
        else:
            problem = OverloadedError("the request timed out")
        try:
            parts = (
                self._respond(versioned_api, context, future.result())
                if problem is None
                else self._respond_with_error(versioned_api, context, in_flight.request, problem)
            )
        except Exception as error:  # noqa: BLE001 - as in `dispatch`.
            parts = self._respond_with_error(versioned_api, context, in_flight.request, error)
        in_flight.finish(parts)

    def _respond(
        self, versioned_api: VersionedApi, context: RequestContext, response: Message | None
    ) -> Parts:
        if self._quotas is not None and not self._quotas.is_idle:
            self._throttle(self._quotas, context, response)
        parts = [] if response is None else versioned_api.encode(context.correlation_id, response)
        versioned_api.counters.answered(self._timer() - context.started)
        return parts

    def _throttle(
        self, quotas: ClientQuotas, context: RequestContext, response: Message | None
    ) -> None:
        """Mute the connection for the throttle time of its client's quotas."""
        # A request that had to wait did most of its work before that.
        busy_seconds = context.busy_seconds or self._timer() - context.started
        throttled_ms = quotas.charge(context, response, busy_seconds)
        if throttled_ms:
            context.client.throttled_ms = max(context.client.throttled_ms, throttled_ms)
            if response is not None and "throttle_time_ms" in response.__struct_fields__:
                response.throttle_time_ms = throttled_ms  # type: ignore[attr-defined]

    def _respond_with_error(
        self,
        versioned_api: VersionedApi,
        context: RequestContext,
        request: Message,
        exception: BaseException,
    ) -> Parts | None:
        api = versioned_api.api
        error = (
            exception if isinstance(exception, KafscaleError) else KafscaleError(_UNEXPECTED_ERROR)
        )
        name = ErrorCode.of(error.code).name
        versioned_api.counters.refused(name, self._timer() - context.started)
        facts = _facts(context.client, api.key, versioned_api.version, context.client_id)
        if error.code == ErrorCode.UNKNOWN_SERVER_ERROR:
            logger.error("request failed", **facts, api=api.name, exc_info=exception)
        else:
            logger.debug("request refused", **facts, api=api.name, error=name)
        try:
            response = versioned_api.route.error_response(context, request, error)
            if self._quotas is not None and not self._quotas.is_idle:
                self._throttle(self._quotas, context, response)
            if response is not None:
                return versioned_api.encode(context.correlation_id, response)
        except Exception:
            logger.exception("error response failed", **facts, api=api.name)
        self.unauthenticated_log.warn(
            logger, "connection closed without a response", **facts, error=name
        )
        return None

    def _reject_unreadable(
        self, client: ClientInfo, request_frame: memoryview, error: ProtocolError
    ) -> Parts | None:
        """Log an unreadable request and close the connection, except for ApiVersions."""
        key = version = None
        client_id = None
        try:
            key, version = headers.peek_api(request_frame)
            # All header versions agree up to the client id, so it can be logged.
            header, _ = headers.decode_request_header(request_frame, 1)
            client_id = header.client_id
            if key == API_VERSIONS.key and version not in API_VERSIONS.versions:
                # The only request for which a client may try a version: answered in v0 (KIP-511).
                ranges = api_versions_response(self.apis)
                ranges.error_code = ErrorCode.UNSUPPORTED_VERSION
                return frame(
                    headers.encode_response_header(header.correlation_id, 0),
                    API_VERSIONS.response_codec(0).encode(ranges),
                )
        except ProtocolError:
            pass  # The header itself is unreadable; the first error is logged.
        facts = _facts(client, key, version, client_id)
        self.unauthenticated_log.warn(logger, "unreadable request", **facts, reason=str(error))
        return None

    def _log_unauthenticated(self, client: ClientInfo, request_frame: memoryview) -> None:
        """Log a request of a client that has not authenticated, or whose session has expired."""
        has_expired = client.sasl_session is not None and client.sasl_session.principal is not None
        self.unauthenticated_log.warn(
            logger,
            "request after session expiry" if has_expired else "request before authentication",
            client=str(client),
            listener=client.listener.name,
            principal=client.principal.full_name,
            api_key=int.from_bytes(request_frame[:2], "big"),
        )

    def _api_versions(
        self, context: RequestContext, request: ApiVersionsRequest
    ) -> ApiVersionsResponse:
        if context.version >= 3:
            name, version = request.client_software_name, request.client_software_version
            if not (_SOFTWARE_NAME.fullmatch(name) and _SOFTWARE_NAME.fullmatch(version)):
                raise InvalidRequestError(
                    f"invalid client software name {name[:100]!r} or version {version[:100]!r}:"
                    " only letters, digits, '.' and '-' are allowed"
                )
            context.client.software_name = name[:SOFTWARE_LENGTH_MAX]
            context.client.software_version = version[:SOFTWARE_LENGTH_MAX]
        return features.describe(api_versions_response(self.apis), context.version)


def _authenticate_raw_token(
    client: ClientInfo, session: SaslSession, token: memoryview
) -> Parts | PendingResponse:
    """Answer a token without a request header by another one, as after SaslHandshake v0."""
    parts: Parts | None
    try:
        response = session.authenticate(client, bytes(token)).token
    except AuthenticationError:
        # The format has no error code: close the connection, after the usual delay for a failure.
        parts, delay_ms = None, session.delay_ms or 0
    else:
        parts, delay_ms = [LENGTH.pack(len(response)), response], session.hold_ms
        if not delay_ms:
            return parts
    pending = PendingResponse()
    asyncio.get_running_loop().call_later(delay_ms / 1000, pending.finish, parts)
    return pending


def _facts(
    client: ClientInfo, key: int | None, version: int | None, client_id: str | None
) -> dict[str, Any]:
    return {"client": str(client), "client_id": client_id, "api_key": key, "version": version}
