"""Who may ask the API for something: one judgement before any handler is called. Pure.

The law, in the order of the questions: while the name or the password is not set, nobody may
anything; what changes something has to come from a page of this console; who is not signed in may
only sign in; and what changes something carries the token of its session, which no other page can
know. Login attempts are counted elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from kafscale.console.http.sessions import COOKIE, Sessions, SignedIn, same

CSRF_HEADER: Final = "x-csrf-token"
SAFE_METHODS: Final = frozenset({"GET", "HEAD"})


@dataclass(frozen=True)
class Refusal:
    """Why somebody is not let through: a status of HTTP, a word and a sentence."""

    status: int
    error: str
    message: str
    wait_seconds: int = 0


DISABLED: Final = Refusal(
    403,
    "ui-disabled",
    "Access is disabled: set KAFSCALE_UI_USERNAME and KAFSCALE_UI_PASSWORD where the console runs,"
    " and start it again.",
)
FOREIGN: Final = Refusal(
    403, "cross-site", "This did not come from a page of the console; open the console itself."
)
SIGNED_OUT: Final = Refusal(401, "signed-out", "Nobody is signed in, or the session has ended.")
UNPROVEN: Final = Refusal(
    403, "csrf", "The token of the session is missing or wrong; load the page again."
)
WRONG: Final = Refusal(401, "wrong-credentials", "The name or the password is wrong.")


@dataclass(frozen=True)
class Asked:
    """What the judgement needs to know of a request; names of headers are in small letters."""

    method: str
    headers: Mapping[str, str]
    cookies: Mapping[str, str]
    to_session: bool
    """Whether it is about the session itself."""


def judge(
    asked: Asked, sessions: Sessions, *, is_configured: bool, now_ms: int
) -> SignedIn | Refusal | None:
    """Who asks, or why they may not; None is a stranger who may ask about the session."""
    changes = asked.method not in SAFE_METHODS
    if not is_configured:
        return None if asked.to_session and not changes else DISABLED
    if changes and not _is_from_here(asked.headers):
        return FOREIGN
    session = sessions.read(asked.cookies.get(COOKIE, ""), now_ms)
    if session is None:
        return None if asked.to_session else SIGNED_OUT
    if asked.to_session and asked.method == "POST":
        return session  # Somebody signs in once more, and proves it by the password.
    if changes and not same(sessions.csrf_token(session), asked.headers.get(CSRF_HEADER, "")):
        return UNPROVEN
    return session


def _is_from_here(headers: Mapping[str, str]) -> bool:
    """Browsers tell where a request comes from; programs that are no browsers say nothing."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    # Older ones, and all of them where there is no TLS, name only the page's own address.
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
