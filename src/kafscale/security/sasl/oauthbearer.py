r"""`OAuthExchange`: a server that recognizes a user by a token (RFC 7628), as Kafka speaks it.

    n,[a=authorization id],\x01auth=Bearer token\x01[name=value\x01...]\x01

The laws: a token that does not convince is answered with what is wrong, as JSON; the client says
that it has understood (\x01), and only then does the attempt fail. Clients show one or the other.
Extensions have to be well-formed; they mean nothing here. Whether a token convinces is left to
`tokens`.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from kafscale.errors import AuthenticationError
from kafscale.security.jwt.verifier import TokenError
from kafscale.security.principal import Identity
from kafscale.security.sasl.authenticator import Step
from kafscale.security.sasl.scram_messages import unescaped

TOKEN_BYTES_MAX: Final = 128 * 1024
"""Tokens that list many groups are large."""

_NAME = r"(?:[^=,\0]|=2C|=3D)+"
_PAIR = r"[A-Za-z]+=[\x20-\x7e\t\r\n]+\x01"
_FIRST = re.compile(rf"n,(?:a=(?P<authorization_id>{_NAME}))?,\x01(?P<pairs>(?:{_PAIR})*)\x01")
_BEARER = re.compile(r"bearer +(?P<token>[-_.A-Za-z0-9]+)", re.IGNORECASE)


class OAuthExchange:
    """One attempt; it takes one token, or two where the first does not convince."""

    def __init__(self, verify: Callable[[str], Identity]) -> None:
        """`verify` says whom a token is for, or raises `TokenError`."""
        self._verify = verify
        self._refusal: TokenError | None = None
        self.claimed = ""

    def step(self, token: bytes) -> Step:
        if self._refusal is not None:
            raise self._refusal
        authorization_id, bearer = _parse(token)
        try:
            identity = self._verify(bearer)
        except TokenError as error:
            self._refusal = error
            return Step(_explanation(error), refusal=error.reason)
        if authorization_id not in {"", identity.user}:
            raise AuthenticationError(
                "Authentication failed: Client requested an authorization id that is different"
                " from the token's principal name"
            )
        return Step(b"", identity)


def _explanation(error: TokenError) -> bytes:
    """Why a token is refused: its status as RFC 7628 asks, and in words for people."""
    return msgspec.json.encode({"status": error.status, "error_description": error.reason})


def _parse(message: bytes) -> tuple[str, str]:
    """The authorization id and the token."""
    found = _FIRST.fullmatch(_text(message))
    if found is None:
        raise _malformed()
    pairs = [pair.partition("=") for pair in found["pairs"].split("\x01")[:-1]]
    values = {name: value for name, _, value in pairs}
    if len(values) < len(pairs):
        raise _malformed()
    bearer = _BEARER.fullmatch(values.get("auth", ""))
    if bearer is None:
        raise _malformed()
    return unescaped(found["authorization_id"] or ""), bearer["token"]


def _text(message: bytes) -> str:
    if len(message) > TOKEN_BYTES_MAX:
        raise _malformed()
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise _malformed() from None


def _malformed() -> AuthenticationError:
    return AuthenticationError("Invalid OAUTHBEARER client first message")
