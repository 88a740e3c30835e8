"""Sessions in signed cookies: who is signed in, until when, and what proves that a page is ours.

The law: a cookie holds nothing that is secret and nothing that is believed without its signature.
The key is made of the password as well, so that a new password ends all sessions; a session that
was ended by its owner is refused for as long as its cookie would have lasted. Time and randomness
are passed in. Setting cookies is left to the door.
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
"""How many ended sessions are remembered: beyond that, the one that ends first is forgotten."""

_SESSION: Final = b"session"
_CSRF: Final = b"csrf"


class SignedIn(msgspec.Struct, frozen=True, array_like=True):
    """What a cookie says."""

    id: str
    username: str
    issued_at_ms: int
    expires_at_ms: int


@dataclass
class Sessions:
    """All sessions of a console, none of which it has to remember."""

    key: bytes = field(repr=False)
    lifetime_ms: int
    _revoked: OrderedDict[str, int] = field(default_factory=OrderedDict, repr=False)

    def issue(self, username: str, now_ms: int, random: bytes) -> SignedIn:
        assert len(random) == ID_BYTES
        return SignedIn(random.hex(), username, now_ms, now_ms + self.lifetime_ms)

    def cookie(self, session: SignedIn) -> str:
        said = _text(msgspec.json.encode(session))
        return f"{said}.{_text(self._signature(_SESSION, said.encode()))}"

    def read(self, cookie: str, now_ms: int) -> SignedIn | None:
        """The session that a cookie proves, if it is one that goes on."""
        said, _, signature = cookie.partition(".")
        expected = _text(self._signature(_SESSION, said.encode()))
        if len(cookie) > COOKIE_LENGTH_MAX or not same(expected, signature):
            return None
        session = msgspec.json.decode(_bytes(said), type=SignedIn)
        if session.id in self._revoked or not self._goes_on(session, now_ms):
            return None
        return session

    def csrf_token(self, session: SignedIn) -> str:
        """What a page of ours knows of a session, and a page of somebody else does not."""
        return _text(self._signature(_CSRF, session.id.encode()))

    def revoke(self, session: SignedIn, now_ms: int) -> None:
        """End a session before its time."""
        for ended in [each for each, until in self._revoked.items() if until <= now_ms]:
            del self._revoked[ended]
        self._revoked[session.id] = session.expires_at_ms
        while len(self._revoked) > REVOKED_MAX:
            self._revoked.popitem(last=False)

    def _goes_on(self, session: SignedIn, now_ms: int) -> bool:
        # The lifetime may have become shorter since the cookie was made.
        return now_ms < min(session.expires_at_ms, session.issued_at_ms + self.lifetime_ms)

    def _signature(self, purpose: bytes, said: bytes) -> bytes:
        return hmac.digest(self.key, purpose + b"\0" + said, "sha256")


def signing_key(secret: bytes, username: str, password: str) -> bytes:
    """A key that is another one as soon as the name, the password or the secret is."""
    said = msgspec.json.encode((username, password))
    return hmac.digest(secret, hashlib.sha256(said).digest(), "sha256")


def same(one: str, other: str) -> bool:
    """Compare in a time that does not tell where two texts differ, nor how long they are."""
    digests = (hashlib.sha256(text.encode(errors="replace")).digest() for text in (one, other))
    return hmac.compare_digest(*digests)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
