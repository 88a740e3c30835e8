"""The client's side of each mechanism: showing a broker who we are.

    attempt = initiation("SCRAM-SHA-512", username, password, token, random)
    token = attempt.first()
    while token is not None:
        token = attempt.next(await ask(token))

The laws: with SCRAM the server has to show that it knows us as well, before we believe that we are
in; and it cannot have us compute for minutes. No I/O.
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
"""How much work a server may ask for: about a second of it."""

_HEADER: Final = b"n,,"
_UNDERSTOOD: Final = b"\x01"


def create_client(
    mechanism: str, username: str, password: str, token: str, random: Random
) -> SaslClient:
    """An attempt by a mechanism, with what it needs out of the rest."""
    if mechanism == "PLAIN":
        return PlainSaslClient(username, password)
    if mechanism == "OAUTHBEARER":
        return OAuthBearerSaslClient(token)
    for kind in ScramMechanism:
        if kind.label == mechanism:
            return ScramSaslClient(kind, username, password, scram.new_nonce(random))
    raise UnsupportedMechanismError(f"{mechanism} is no mechanism that is known here")


class PlainSaslClient:
    """The user and the password, as they are."""

    def __init__(self, username: str, password: str) -> None:
        self._token = f"\0{username}\0{password}".encode()

    def initial_response(self) -> bytes:
        return self._token

    def evaluate_challenge(self, challenge: bytes) -> bytes | None:
        if challenge:
            raise AuthenticationError("the server asks for more than PLAIN has to say")
        return None


class OAuthBearerSaslClient:
    """A token."""

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
        self._failure = AuthenticationError(f"the server refuses the token: {_reason(challenge)}")
        return _UNDERSTOOD


class ScramSaslClient:
    """A proof that we know the password; the server proves that it knows something of it, too."""

    def __init__(self, mechanism: ScramMechanism, username: str, password: str, nonce: str) -> None:
        """`nonce` is for this attempt alone."""
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
            raise AuthenticationError("the server does not know this user; is it the right one?")
        return None

    def _prove(self, challenge: bytes) -> bytes:
        nonce, salt, iterations = scram_messages.server_first(challenge)
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise AuthenticationError("the server answers to something that was not asked")
        if not scram.ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise AuthenticationError(
                f"the server asks for {iterations} iterations, which is not within"
                f" {scram.ITERATIONS_MIN} and {ITERATIONS_MAX}"
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


class _Explanation(msgspec.Struct):
    status: str = ""
    error_description: str = ""


def _reason(challenge: bytes) -> str:
    try:
        told = msgspec.json.decode(challenge, type=_Explanation)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return "it does not say why"
    return told.error_description or told.status or "it does not say why"
