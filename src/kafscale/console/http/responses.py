"""HTTP responses: results as JSON, errors as a status with a `Problem`; headers of all responses.

Messages of `KafscaleError` are shown, as they are written for people. Details of other errors are
only logged. Programs should use the error code, not the message.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from starlette.responses import Response

from kafscale.client.errors import BrokerResponseError, UnreachableError
from kafscale.console.http.requests import JSON, Rejection, TooLargeError
from kafscale.console.schema.base import Problem
from kafscale.control_plane.errors import ControlError
from kafscale.control_plane.errors import UnreachableError as ControlUnreachableError
from kafscale.errors import (
    AuthorizationError,
    ConfigError,
    KafscaleError,
    ObjectNotFoundError,
    OperatingError,
)
from kafscale.observability.logging import get_logger
from kafscale.protocol.error_codes import ErrorCode

logger = get_logger(__name__)

_NOT_FOUND: Final = (404, "not-found")
_INVALID: Final = (400, "invalid-request")
_FORBIDDEN: Final = (403, "forbidden")
_CONFLICT: Final = (409, "conflict")
_TOO_LARGE: Final = (413, "too-large")
_UNAVAILABLE: Final = (503, "unavailable")
_FAILED: Final = (500, "failed")

_BY_KIND: Final = (
    (UnreachableError, _UNAVAILABLE),
    (ControlUnreachableError, _UNAVAILABLE),
    (AuthorizationError, _FORBIDDEN),
    (ObjectNotFoundError, _NOT_FOUND),
    (OperatingError, _UNAVAILABLE),
    (TooLargeError, _TOO_LARGE),
    (ConfigError, _CONFLICT),
)
"""From the most specific to the most general: the first match counts."""

_BY_CODE: Final = {
    **dict.fromkeys(
        (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.GROUP_ID_NOT_FOUND,
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
            ErrorCode.RESOURCE_NOT_FOUND,
        ),
        _NOT_FOUND,
    ),
    **dict.fromkeys(
        (
            ErrorCode.TOPIC_ALREADY_EXISTS,
            ErrorCode.NON_EMPTY_GROUP,
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
            ErrorCode.SECURITY_DISABLED,
            ErrorCode.DUPLICATE_RESOURCE,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.PRODUCER_FENCED,
            ErrorCode.INVALID_PRODUCER_EPOCH,
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ),
        _CONFLICT,
    ),
    **dict.fromkeys((ErrorCode.POLICY_VIOLATION, ErrorCode.SASL_AUTHENTICATION_FAILED), _FORBIDDEN),
    **dict.fromkeys(
        (
            ErrorCode.OFFSET_OUT_OF_RANGE,
            ErrorCode.MESSAGE_TOO_LARGE,
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ),
        _INVALID,
    ),
}
"""The HTTP status of Kafka errors where the name does not imply it."""

_BY_STATUS: Final = {
    "NOT_FOUND": _NOT_FOUND,
    "INVALID_ARGUMENT": _INVALID,
    "PERMISSION_DENIED": _FORBIDDEN,
    "FAILED_PRECONDITION": _CONFLICT,
    "UNAVAILABLE": _UNAVAILABLE,
    "DEADLINE_EXCEEDED": _UNAVAILABLE,
    "RESOURCE_EXHAUSTED": _UNAVAILABLE,
}
"""The same for gRPC statuses of the control plane."""

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none';"
    " form-action 'self'; frame-ancestors 'none'"
)
"""No foreign content is loaded or executed, and the console cannot be framed. Inline styles are
allowed, as charts and menus use them for positioning; inline scripts are not."""

COMMON_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
TLS_HEADERS: Final[Mapping[str, str]] = {"Strict-Transport-Security": "max-age=31536000"}

NO_STORE: Final = "no-store"
NO_CACHE: Final = "no-cache"
IMMUTABLE: Final = "public, max-age=31536000, immutable"
"""For files whose names contain a hash of their content."""


def success(content: Any) -> Response:
    """A successful response; None has no content."""
    if content is None:
        return Response(status_code=204, headers={"Cache-Control": NO_STORE})
    return _json(200, msgspec.json.encode(content))


def rejection(reason: Rejection) -> Response:
    response = problem(reason.status, reason.error, reason.message)
    if reason.wait_seconds:
        response.headers["Retry-After"] = str(reason.wait_seconds)
    return response


def problem(status: int, error: str, message: str) -> Response:
    return _json(status, msgspec.json.encode(Problem(error=error, message=message)))


def error_response(error: Exception, path: str) -> Response:
    """The response for an exception of a handler."""
    if isinstance(error, KafscaleError):
        status, code_name = status_of(error)
        if status == _FAILED[0]:
            logger.warning("request failed", path=path, reason=str(error))
        # Hints about the command line do not help in a browser.
        message = (
            error.message_without_hint if isinstance(error, BrokerResponseError) else str(error)
        )
        return problem(status, code_name, message)
    if isinstance(error, TimeoutError):
        return problem(
            *_UNAVAILABLE, "The request timed out: check whether it was done, or try again."
        )
    if isinstance(error, msgspec.DecodeError):
        return problem(*_INVALID, f"Invalid request: {error}.")
    logger.error("request failed", path=path, exc_info=error)
    return problem(*_FAILED, "Internal error: see the log of the console.")


def status_of(error: KafscaleError) -> tuple[int, str]:
    """The HTTP status and error code of an error."""
    for kind, status in _BY_KIND:
        if isinstance(error, kind):
            return status
    if isinstance(error, ControlError):
        return _BY_STATUS.get(error.status, _FAILED)
    if type(error) is KafscaleError:
        return _CONFLICT  # The message says why the current state does not allow it.
    code = (
        error.error_code
        if isinstance(error, BrokerResponseError)
        else ErrorCode.of(type(error).code)
    )
    return next(_kafka_statuses(code), _FAILED)


def _kafka_statuses(code: ErrorCode) -> Iterator[tuple[int, str]]:
    """Possible statuses of a Kafka error, the most specific first."""
    if code in _BY_CODE:
        yield _BY_CODE[code]
    if code.name.endswith("AUTHORIZATION_FAILED"):
        yield _FORBIDDEN
    if code.name.startswith(("INVALID_", "UNSUPPORTED_")):
        yield _INVALID
    if code.retriable:
        yield _UNAVAILABLE


def _json(status: int, body: bytes) -> Response:
    return Response(body, status, {"Cache-Control": NO_STORE}, media_type=JSON)


def security_headers(*, over_tls: bool) -> dict[str, str]:
    """The headers added to every response."""
    return {**COMMON_HEADERS, **(TLS_HEADERS if over_tls else {})}
