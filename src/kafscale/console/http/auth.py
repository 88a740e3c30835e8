"""The door of the API: what a request has to get past, and how it is told whether it did.

The law: nothing of a request is read before the gate has let it through. Sessions are cookies that
scripts cannot read and other sites do not send. Nobody learns more from a login that failed than
that it did.
"""

import secrets
import time
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kafscale import __version__
from kafscale.config.sections.ui import Ui
from kafscale.console.http import csrf_and_access, responses
from kafscale.console.http.login_throttle import Throttle
from kafscale.console.http.request_body import body
from kafscale.console.http.sessions import COOKIE, ID_BYTES, Sessions, SignedIn, same, signing_key
from kafscale.console.schema.session import Login, Session
from kafscale.observability.logging import get_logger

log = get_logger(__name__)

LOGIN_BYTES_MAX: Final = 16 << 10
"""Strangers may send so much."""
HOUR_MS: Final = 3_600_000


@dataclass
class Door:
    """Made once, of the settings."""

    settings: Ui
    sessions: Sessions
    throttle: Throttle = field(default_factory=Throttle)

    @classmethod
    def of(cls, settings: Ui) -> "Door":
        secret = settings.session_key.encode() or secrets.token_bytes(32)
        key = signing_key(secret, settings.username, settings.password)
        return cls(settings, Sessions(key, settings.session_hours * HOUR_MS))

    @property
    def is_configured(self) -> bool:
        return bool(self.settings.username and self.settings.password)

    @property
    def is_over_tls(self) -> bool:
        return bool(self.settings.cert_file) or self.settings.behind_tls

    def judge(
        self, request: Request, *, to_session: bool = False
    ) -> SignedIn | csrf_and_access.Refusal | None:
        """Who asks, or why they may not."""
        asked = csrf_and_access.Asked(request.method, request.headers, request.cookies, to_session)
        return csrf_and_access.judge(
            asked, self.sessions, is_configured=self.is_configured, now_ms=clock_ms()
        )

    def goes_on(self, session: SignedIn) -> bool:
        return self.sessions.read(self.sessions.cookie(session), clock_ms()) is not None

    async def session(self, request: Request) -> Response:
        """Answer what is asked about the session itself: whose it is, a beginning, an end."""
        found = self.judge(request, to_session=True)
        if isinstance(found, csrf_and_access.Refusal):
            return responses.refusal(found)
        if request.method == "POST":
            return await self._sign_in(request, found)
        if request.method == "DELETE":
            return self._sign_out(found)
        if request.method not in csrf_and_access.SAFE_METHODS:
            return responses.problem(405, "invalid-request", "A session begins, is read and ends.")
        return responses.view(self._told(found))

    async def _sign_in(self, request: Request, before: SignedIn | None) -> Response:
        address = request.client.host if request.client else ""
        login = await body(request, Login, bytes_max=LOGIN_BYTES_MAX)
        # From here on nothing is waited for, so that many tries at once count like one by one.
        wait_seconds = self.throttle.wait_seconds(address, time.monotonic())
        if wait_seconds:
            return responses.refusal(_throttled(wait_seconds))
        # Both are compared, whatever comes of the first: the time tells nothing.
        right = same(login.username, self.settings.username) & same(
            login.password, self.settings.password
        )
        if not right:
            self.throttle.failed(address, time.monotonic())
            log.warning("a login failed", address=address)
            return responses.refusal(csrf_and_access.WRONG)
        self.throttle.succeeded(address)
        if before is not None:
            self.sessions.revoke(before, clock_ms())
        session = self.sessions.issue(
            self.settings.username, clock_ms(), secrets.token_bytes(ID_BYTES)
        )
        log.info("signed in", address=address)
        answer = responses.view(self._told(session))
        self._set_cookie(answer, self.sessions.cookie(session), self.settings.session_hours * 3600)
        return answer

    def _sign_out(self, session: SignedIn | None) -> Response:
        if session is not None:
            self.sessions.revoke(session, clock_ms())
        answer = responses.view(None)
        self._set_cookie(answer, "", 0)
        return answer

    def _told(self, session: SignedIn | None) -> Session:
        return Session(
            is_configured=self.is_configured,
            username=None if session is None else session.username,
            csrf_token=None if session is None else self.sessions.csrf_token(session),
            expires_at_ms=None if session is None else session.expires_at_ms,
            version=__version__,
        )

    def _set_cookie(self, answer: Response, value: str, age_seconds: int) -> None:
        answer.set_cookie(
            COOKIE,
            value,
            max_age=age_seconds,
            path="/",
            secure=self.is_over_tls,
            httponly=True,
            samesite="strict",
        )


def clock_ms() -> int:
    return time.time_ns() // 1_000_000


def _throttled(wait_seconds: int) -> csrf_and_access.Refusal:
    return csrf_and_access.Refusal(
        429,
        "throttled",
        f"Too many logins have failed; try again in {wait_seconds} seconds.",
        wait_seconds,
    )
