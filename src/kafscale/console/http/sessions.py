"""Login sessions in signed cookies, and their CSRF tokens.

Invariants: a cookie contains no secret, and nothing in it is trusted without its signature. The
signing key depends on the password, so a new password ends all sessions. A session that was logged
out stays revoked until its cookie would have expired. Time and randomness are passed in.
"""

import base64
import hashlib
import hmac
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

import msgspec

COOKIE: Final = "kafscale-session"
ID_BYTES: Final = 16
COOKIE_LENGTH_MAX: Final = 1024
REVOKED_MAX: Final = 10_000
"""How many revoked sessions are remembered; beyond that, the oldest is forgotten."""

_SESSION: Final = b"session"
_CSRF: Final = b"csrf"


class LoginSession(msgspec.Struct, frozen=True, array_like=True):
    """The content of a session cookie."""

    id: str
    username: str
    issued_at_ms: int
    expires_at_ms: int


@dataclass
class Sessions:
    """Issues and verifies sessions; stores only revoked ones."""

    key: bytes = field(repr=False)
    lifetime_ms: int
    _revoked: OrderedDict[str, int] = field(default_factory=OrderedDict, repr=False)

    def issue(self, username: str, now_ms: int, random: bytes) -> LoginSession:
        assert len(random) == ID_BYTES
        return LoginSession(random.hex(), username, now_ms, now_ms + self.lifetime_ms)

    def cookie(self, session: LoginSession) -> str:
        payload = _text(msgspec.json.encode(session))
        return f"{payload}.{_text(self._signature(_SESSION, payload.encode()))}"

    def read(self, cookie: str, now_ms: int) -> LoginSession | None:
        """The session of a cookie, if its signature is valid and it has not ended."""
        payload, _, signature = cookie.partition(".")
        expected = _text(self._signature(_SESSION, payload.encode()))
        if len(cookie) > COOKIE_LENGTH_MAX or not constant_time_equal(expected, signature):
            return None
        session = msgspec.json.decode(_bytes(payload), type=LoginSession)
        if session.id in self._revoked or not self._is_unexpired(session, now_ms):
            return None
        return session

    def csrf_token(self, session: LoginSession) -> str:
        """The token that a page of the console must send with unsafe requests."""
        return _text(self._signature(_CSRF, session.id.encode()))

    def revoke(self, session: LoginSession, now_ms: int) -> None:
        """End a session before it expires."""
        for ended in [each for each, until in self._revoked.items() if until <= now_ms]:
            del self._revoked[ended]
        self._revoked[session.id] = session.expires_at_ms
        while len(self._revoked) > REVOKED_MAX:
            self._revoked.popitem(last=False)

    def _is_unexpired(self, session: LoginSession, now_ms: int) -> bool:
        # The configured lifetime may have become shorter since the cookie was issued.
        return now_ms < min(session.expires_at_ms, session.issued_at_ms + self.lifetime_ms)

    def _signature(self, purpose: bytes, payload: bytes) -> bytes:
        return hmac.digest(self.key, purpose + b"\0" + payload, "sha256")


def signing_key(secret: bytes, username: str, password: str) -> bytes:
    """A key that changes with the name, the password or the secret."""
    payload = msgspec.json.encode((username, password))
    return hmac.digest(secret, hashlib.sha256(payload).digest(), "sha256")


def constant_time_equal(one: str, other: str) -> bool:
    """Compare without revealing by timing where texts differ or how long they are."""
    digests = (hashlib.sha256(text.encode(errors="replace")).digest() for text in (one, other))
    return hmac.compare_digest(*digests)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
