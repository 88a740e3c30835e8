r"""`OAuthBearerSaslServer`: the server side of OAUTHBEARER (RFC 7628), as in Kafka.

    n,[a=authorization id],\x01auth=Bearer token\x01[name=value\x01...]\x01

A rejected token is answered with the reason as JSON; the client acknowledges it with \x01, and then
the attempt fails. Extensions must be well-formed and are ignored. `TokenVerifier` verifies tokens.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from kafscale.errors import AuthenticationError
from kafscale.security.jwt.verifier import TokenError
from kafscale.security.principal import Principal
from kafscale.security.sasl.authenticator import SaslStep
from kafscale.security.sasl.scram_messages import unescape_name

TOKEN_BYTES_MAX: Final = 128 * 1024
"""Tokens with many groups are large."""

_NAME = r"(?:[^=,\0]|=2C|=3D)+"
_PAIR = r"[A-Za-z]+=[\x20-\x7e\t\r\n]+\x01"
_FIRST = re.compile(rf"n,(?:a=(?P<authorization_id>{_NAME}))?,\x01(?P<pairs>(?:{_PAIR})*)\x01")
_BEARER = re.compile(r"bearer +(?P<token>[-_.A-Za-z0-9]+)", re.IGNORECASE)


class OAuthBearerSaslServer:
    """One authentication attempt, with one token, or two if the first is rejected."""

    def __init__(self, verify: Callable[[str], Principal]) -> None:
        """`verify` returns the principal of a token, or raises `TokenError`."""
        self._verify = verify
        self._failure: TokenError | None = None
        self.claimed_user = ""

    def evaluate_response(self, token: bytes) -> SaslStep:
        if self._failure is not None:
            raise self._failure
        authorization_id, bearer = _parse(token)
        try:
            principal = self._verify(bearer)
        except TokenError as error:
            self._failure = error
            return SaslStep(_error_response(error), failure=error.reason)
        if authorization_id not in {"", principal.user}:
            raise AuthenticationError(
                "Authentication failed: Client requested an authorization id that is different"
                " from the token's principal name"
            )
        return SaslStep(b"", principal)


def _error_response(error: TokenError) -> bytes:
    """The error response of RFC 7628, with a description for people."""
    return msgspec.json.encode({"status": error.status, "error_description": error.reason})


def _parse(message: bytes) -> tuple[str, str]:
    """Return the authorization id and the token."""
    match = _FIRST.fullmatch(_text(message))
    if match is None:
        raise _malformed()
    pairs = [pair.partition("=") for pair in match["pairs"].split("\x01")[:-1]]
    values = {name: value for name, _, value in pairs}
    if len(values) < len(pairs):
        raise _malformed()
    bearer = _BEARER.fullmatch(values.get("auth", ""))
    if bearer is None:
        raise _malformed()
    return unescape_name(match["authorization_id"] or ""), bearer["token"]


def _text(message: bytes) -> str:
    if len(message) > TOKEN_BYTES_MAX:
        raise _malformed()
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise _malformed() from None


def _malformed() -> AuthenticationError:
    return AuthenticationError("Invalid OAUTHBEARER client first message")
