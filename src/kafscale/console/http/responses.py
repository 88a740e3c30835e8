"""How what happened becomes an answer: views become JSON, and errors a status with a `Problem`.

The law: an error of ours is told with its own sentence, because it was written for people; of any
other only the log has the details. What a program may act on is the word, not the sentence.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from starlette.responses import Response

from kafscale.client.errors import AnsweredError, UnreachableError
from kafscale.console.http.csrf_and_access import Refusal
from kafscale.console.http.request_body import JSON, TooLargeError
from kafscale.console.http.security_headers import NEVER_KEPT
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

log = get_logger(__name__)

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
"""From the special to the general: the first that fits counts."""

_BY_CODE: Final = {
    **dict.fromkeys(
        (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.GROUP_ID_NOT_FOUND,
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
"""What Kafka's errors mean to whoever asks over HTTP, where their names do not say it."""

_BY_STATUS: Final = {
    "NOT_FOUND": _NOT_FOUND,
    "INVALID_ARGUMENT": _INVALID,
    "PERMISSION_DENIED": _FORBIDDEN,
    "FAILED_PRECONDITION": _CONFLICT,
    "UNAVAILABLE": _UNAVAILABLE,
    "DEADLINE_EXCEEDED": _UNAVAILABLE,
    "RESOURCE_EXHAUSTED": _UNAVAILABLE,
}
"""The same for the statuses of the control plane."""


def view(told: Any) -> Response:
    """Something that was asked for; nothing has no content."""
    if told is None:
        return Response(status_code=204, headers={"Cache-Control": NEVER_KEPT})
    return _json(200, msgspec.json.encode(told))


def refusal(refused: Refusal) -> Response:
    answer = problem(refused.status, refused.error, refused.message)
    if refused.wait_seconds:
        answer.headers["Retry-After"] = str(refused.wait_seconds)
    return answer


def problem(status: int, error: str, message: str) -> Response:
    return _json(status, msgspec.json.encode(Problem(error=error, message=message)))


def failure(error: Exception, path: str) -> Response:
    """The answer for what a handler has raised."""
    if isinstance(error, KafscaleError):
        status, word = meaning(error)
        if status == _FAILED[0]:
            log.warning("a request failed", path=path, reason=str(error))
        # Hints of the command line are of no use to visitors.
        told = error.sentence if isinstance(error, AnsweredError) else str(error)
        return problem(status, word, told)
    if isinstance(error, TimeoutError):
        return problem(
            *_UNAVAILABLE,
            "It took too long and was given up; look whether it is done, or try again.",
        )
    if isinstance(error, msgspec.DecodeError):
        return problem(*_INVALID, f"The request is not of the right form: {error}.")
    log.error("a request failed", path=path, exc_info=error)
    return problem(*_FAILED, "The console failed in a way that its log tells more about.")


def meaning(error: KafscaleError) -> tuple[int, str]:
    """The status and the word for an error of ours."""
    for kind, status in _BY_KIND:
        if isinstance(error, kind):
            return status
    if isinstance(error, ControlError):
        return _BY_STATUS.get(error.status, _FAILED)
    if type(error) is KafscaleError:
        return _CONFLICT  # Its sentence says why this cannot be, as things are.
    code = error.answer if isinstance(error, AnsweredError) else ErrorCode.of(type(error).code)
    return next(_readings(code), _FAILED)


def _readings(code: ErrorCode) -> Iterator[tuple[int, str]]:
    """What a code of Kafka means, the surest reading first."""
    if code in _BY_CODE:
        yield _BY_CODE[code]
    if code.name.endswith("AUTHORIZATION_FAILED"):
        yield _FORBIDDEN
    if code.name.startswith(("INVALID_", "UNSUPPORTED_")):
        yield _INVALID
    if code.retriable:
        yield _UNAVAILABLE


def _json(status: int, body: bytes) -> Response:
    return Response(body, status, {"Cache-Control": NEVER_KEPT}, media_type=JSON)
