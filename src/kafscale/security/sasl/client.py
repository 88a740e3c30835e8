"""The client side of the SASL mechanisms. No I/O.

    client = create_client("SCRAM-SHA-512", username, password, token, random)
    token = client.initial_response()
    while token is not None:
        token = client.evaluate_challenge(await authenticate(token))

With SCRAM the server has to prove that it knows the user, too, and the number of iterations that it
can request is limited.
"""

import hmac
from random import Random
from typing import Final

import msgspec

from kafscale.errors import AuthenticationError, UnsupportedMechanismError
from kafscale.metadata.access.model import ScramMechanism
from kafscale.security.sasl import scram, scram_messages
from kafscale.security.sasl.authenticator import SaslClient

ITERATIONS_MAX: Final = 1_000_000
"""The maximum work that a server may request: about a second."""

_HEADER: Final = b"n,,"
_ACKNOWLEDGEMENT: Final = b"\x01"


def create_client(
    mechanism: str, username: str, password: str, token: str, random: Random
) -> SaslClient:
    """Create the client of a mechanism; each uses some of the arguments."""
    if mechanism == "PLAIN":
        return PlainSaslClient(username, password)
    if mechanism == "OAUTHBEARER":
        return OAuthBearerSaslClient(token)
    for kind in ScramMechanism:
        if kind.label == mechanism:
            return ScramSaslClient(kind, username, password, scram.new_nonce(random))
    raise UnsupportedMechanismError(f"unsupported SASL mechanism {mechanism}")


class PlainSaslClient:
    """Sends user and password."""

    def __init__(self, username: str, password: str) -> None:
        self._token = f"\0{username}\0{password}".encode()

    def initial_response(self) -> bytes:
        return self._token

    def evaluate_challenge(self, challenge: bytes) -> bytes | None:
        if challenge:
            raise AuthenticationError(
                "unexpected challenge from the server in a PLAIN authentication"
            )
        return None


class OAuthBearerSaslClient:
    """Sends a token."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._failure: AuthenticationError | None = None

    def initial_response(self) -> bytes:
        return f"n,,\x01auth=Bearer {self._token}\x01\x01".encode()

    def evaluate_challenge(self, challenge: bytes) -> bytes | None:
        if self._failure is not None:
            raise self._failure
        if not challenge:
            return None
        self._failure = AuthenticationError(f"the server rejected the token: {_reason(challenge)}")
        return _ACKNOWLEDGEMENT


class ScramSaslClient:
    """Proves knowledge of the password, and verifies the server's proof."""

    def __init__(self, mechanism: ScramMechanism, username: str, password: str, nonce: str) -> None:
        """`nonce` must be used for one attempt only."""
        self._mechanism = mechanism
        self._password = password
        self._nonce = nonce
        self._bare = f"n={scram_messages.escape_name(username)},r={nonce}".encode()
        self._expected: bytes | None = None

    def initial_response(self) -> bytes:
        return _HEADER + self._bare

    def evaluate_challenge(self, challenge: bytes) -> bytes | None:
        if self._expected is None:
            return self._prove(challenge)
        if not hmac.compare_digest(scram_messages.server_final(challenge), self._expected):
            raise AuthenticationError(
                "the server's signature is wrong: it does not have the user's credential"
            )
        return None

    def _prove(self, challenge: bytes) -> bytes:
        nonce, salt, iterations = scram_messages.server_first(challenge)
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise AuthenticationError("the server's nonce does not match the request")
        if not scram.ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise AuthenticationError(
                f"the server requests {iterations} iterations, expected {scram.ITERATIONS_MIN} to"
                f" {ITERATIONS_MAX}"
            )
        salted = scram.salt_password(self._password, self._mechanism, salt, iterations)
        unproven = f"c={scram_messages.encode_base64(_HEADER)},r={nonce}".encode()
        signed = b",".join((self._bare, challenge, unproven))
        key = scram.client_key(self._mechanism, salted)
        stored = scram.stored_key(self._mechanism, key)
        proof = scram.xor(key, scram.signature(self._mechanism, stored, signed))
        server = scram.server_key(self._mechanism, salted)
        self._expected = scram.signature(self._mechanism, server, signed)
        return unproven + f",p={scram_messages.encode_base64(proof)}".encode()


class _ErrorResponse(msgspec.Struct):
    status: str = ""
    error_description: str = ""


def _reason(challenge: bytes) -> str:
    try:
        error = msgspec.json.decode(challenge, type=_ErrorResponse)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return "no reason given"
    return error.error_description or error.status or "no reason given"
