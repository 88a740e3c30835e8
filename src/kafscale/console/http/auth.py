"""Authentication of API requests: sessions in cookies, login and logout.

Invariants: no part of a request is read before the access check passes. Session cookies are
HttpOnly and SameSite=Strict. A failed login does not reveal whether the name or the password was
wrong.
"""

import asyncio
import math
import secrets
import time
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kafscale import __version__
from kafscale.aio.clock import clock
from kafscale.config.sections.ui import Ui
from kafscale.console.http import requests, responses
from kafscale.console.http.login_throttle import TURN_SECONDS, LoginThrottle
from kafscale.console.http.requests import read_body
from kafscale.console.http.sessions import (
    COOKIE,
    ID_BYTES,
    LoginSession,
    Sessions,
    constant_time_equal,
    signing_key,
)
from kafscale.console.schema.access import Login, Session
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

LOGIN_BYTES_MAX: Final = 16 << 10
"""The size of a login request, which is not authenticated yet."""
HOUR_MS: Final = 3_600_000

THROTTLED: Final = requests.Rejection(
    429,
    "throttled",
    f"Too many logins wait after failures: try again in {math.ceil(TURN_SECONDS)} seconds.",
    math.ceil(TURN_SECONDS),
)


@dataclass
class Authenticator:
    """Created once from the settings."""

    settings: Ui
    sessions: Sessions
    throttle: LoginThrottle = field(default_factory=LoginThrottle)

    @classmethod
    def of(cls, settings: Ui) -> "Authenticator":
        secret = settings.session_key.encode() or secrets.token_bytes(32)
        key = signing_key(secret, settings.username, settings.password)
        return cls(settings, Sessions(key, settings.session_hours * HOUR_MS))

    @property
    def is_configured(self) -> bool:
        return bool(self.settings.username and self.settings.password)

    @property
    def is_over_tls(self) -> bool:
        return bool(self.settings.cert_file) or self.settings.tls_terminated_upstream

    def check_access(
        self, request: Request, *, to_session: bool = False
    ) -> LoginSession | requests.Rejection | None:
        """The session of a request, or why it is rejected."""
        info = requests.RequestInfo(request.method, request.headers, request.cookies, to_session)
        return requests.check_access(
            info, self.sessions, is_configured=self.is_configured, now_ms=clock()
        )

    def is_valid(self, session: LoginSession) -> bool:
        return self.sessions.read(self.sessions.cookie(session), clock()) is not None

    async def session(self, request: Request) -> Response:
        """Handle requests for the session resource: read, log in, log out."""
        session = self.check_access(request, to_session=True)
        if isinstance(session, requests.Rejection):
            return responses.rejection(session)
        if request.method == "POST":
            return await self._log_in(request, session)
        if request.method == "DELETE":
            return self._log_out(session)
        if request.method not in requests.SAFE_METHODS:
            return responses.problem(
                405, "invalid-request", "The session resource supports GET, POST and DELETE."
            )
        return responses.success(self._session_view(session))

    async def _log_in(self, request: Request, previous: LoginSession | None) -> Response:
        address = request.client.host if request.client else ""
        login = await read_body(request, Login, bytes_max=LOGIN_BYTES_MAX)
        hold_seconds = self.throttle.begin(address, time.monotonic())
        if hold_seconds is None:
            return responses.rejection(THROTTLED)
        if hold_seconds:
            await asyncio.sleep(hold_seconds)
        # No await from here on, so that concurrent attempts are counted one by one.
        # Both are always compared, so that the duration reveals nothing.
        is_correct = constant_time_equal(
            login.username, self.settings.username
        ) & constant_time_equal(login.password, self.settings.password)
        if not is_correct:
            self.throttle.failed(address, time.monotonic())
            logger.warning("login failed", address=address)
            return responses.rejection(requests.WRONG_CREDENTIALS)
        self.throttle.succeeded(address)
        if previous is not None:
            self.sessions.revoke(previous, clock())
        session = self.sessions.issue(
            self.settings.username, clock(), secrets.token_bytes(ID_BYTES)
        )
        logger.info("login succeeded", address=address)
        response = responses.success(self._session_view(session))
        self._set_cookie(
            response, self.sessions.cookie(session), self.settings.session_hours * 3600
        )
        return response

    def _log_out(self, session: LoginSession | None) -> Response:
        if session is not None:
            self.sessions.revoke(session, clock())
        response = responses.success(None)
        self._set_cookie(response, "", 0)
        return response

    def _session_view(self, session: LoginSession | None) -> Session:
        return Session(
            is_configured=self.is_configured,
            username=None if session is None else session.username,
            csrf_token=None if session is None else self.sessions.csrf_token(session),
            expires_at_ms=None if session is None else session.expires_at_ms,
            version=__version__,
        )

    def _set_cookie(self, response: Response, value: str, age_seconds: int) -> None:
        response.set_cookie(
            COOKIE,
            value,
            max_age=age_seconds,
            path="/",
            secure=self.is_over_tls,
            httponly=True,
            samesite="strict",
        )
