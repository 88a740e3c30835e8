"""Checks API requests before their handlers run, and reads their bodies and queries.

The order of the checks:

1. While no user name or password is set, every request is rejected. 2. Requests that change
something must come from a page of this console. 3. Without a session, only the session resource can
be used. 4. Requests that change something must carry the CSRF token of the session.

Login attempts are limited elsewhere. The size of a body is bounded, and invalid input is rejected.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request

from kafscale.console.http.sessions import COOKIE, LoginSession, Sessions, constant_time_equal
from kafscale.errors import InvalidRequestError

CSRF_HEADER: Final = "x-csrf-token"
SAFE_METHODS: Final = frozenset({"GET", "HEAD"})

JSON: Final = "application/json"
BODY_BYTES_MAX: Final = 1 << 20


@dataclass(frozen=True)
class Rejection:
    """Why a request is rejected: HTTP status, error code and message."""

    status: int
    error: str
    message: str
    wait_seconds: int = 0


DISABLED: Final = Rejection(
    403,
    "ui-disabled",
    "Access is disabled: set KAFSCALE_UI_USERNAME and KAFSCALE_UI_PASSWORD, and restart the"
    " console.",
)
CROSS_SITE: Final = Rejection(
    403, "cross-site", "Cross-site request rejected: use a page of the console."
)
SIGNED_OUT: Final = Rejection(401, "signed-out", "Not logged in, or the session has expired.")
BAD_CSRF_TOKEN: Final = Rejection(
    403, "csrf", "The CSRF token is missing or wrong: reload the page."
)
WRONG_CREDENTIALS: Final = Rejection(401, "wrong-credentials", "Wrong user name or password.")


@dataclass(frozen=True)
class RequestInfo:
    """The parts of a request that are checked; header names are in lower case."""

    method: str
    headers: Mapping[str, str]
    cookies: Mapping[str, str]
    to_session: bool
    """True for the session resource."""


def check_access(
    request: RequestInfo, sessions: Sessions, *, is_configured: bool, now_ms: int
) -> LoginSession | Rejection | None:
    """The session, or why the request is rejected; None for session requests without one."""
    is_unsafe = request.method not in SAFE_METHODS
    if not is_configured:
        return None if request.to_session and not is_unsafe else DISABLED
    if is_unsafe and not _is_same_origin(request.headers):
        return CROSS_SITE
    session = sessions.read(request.cookies.get(COOKIE, ""), now_ms)
    if session is None:
        return None if request.to_session else SIGNED_OUT
    if request.to_session and request.method == "POST":
        return session  # A new login is authenticated by the password.
    if is_unsafe and not constant_time_equal(
        sessions.csrf_token(session), request.headers.get(CSRF_HEADER, "")
    ):
        return BAD_CSRF_TOKEN
    return session


def _is_same_origin(headers: Mapping[str, str]) -> bool:
    """Browsers send the origin of a request; other clients send nothing."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    # Older browsers, and all of them without TLS, send only Origin.
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()


class TooLargeError(InvalidRequestError):
    """A body exceeds its limit."""


async def read_body(request: Request, model: Any, *, bytes_max: int = BODY_BYTES_MAX) -> Any:
    """Read a JSON body. Forms of other sites cannot send this content type without preflight."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != JSON:
        raise InvalidRequestError(f"send JSON with the header Content-Type: {JSON}")
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > bytes_max:
            raise TooLargeError(f"the request body exceeds {bytes_max} bytes")
    try:
        return msgspec.json.decode(content, type=model)
    except UnicodeDecodeError:
        raise InvalidRequestError("the request body is not UTF-8") from None


def parse_query(parameters: Mapping[str, str], model: Any) -> Any:
    """Parse the query string, where numbers are text."""
    return msgspec.convert(dict(parameters), type=model, strict=False)
