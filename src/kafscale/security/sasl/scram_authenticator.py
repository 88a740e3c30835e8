"""`ScramSaslServer`: the server side of SCRAM (RFC 5802), as in Kafka.

Invariants:

* An unknown user goes through the same exchange, with a salt that is constant for that name, and
  fails with the error of a wrong password.
* Proofs are compared in constant time.
* The authorization id must be empty or the user's own name.

Channel binding and delegation tokens are not supported. `scram` computes keys and proofs,
`scram_messages` parses messages.
"""

import hmac
from collections.abc import Callable
from typing import Final, NamedTuple

from kafscale.errors import AuthenticationError
from kafscale.metadata.access.model import ScramCredential, ScramMechanism
from kafscale.security.principal import USER_PREFIX, Principal
from kafscale.security.sasl import scram, scram_messages
from kafscale.security.sasl.authenticator import SaslStep

Credentials = Callable[[str, ScramMechanism], ScramCredential | None]

_DELEGATION_TOKEN: Final = "tokenauth"  # noqa: S105 - a name, not a secret.


class Decoys(NamedTuple):
    """What unknown users are shown: the same by all brokers, and what most users are shown."""

    secret: bytes
    """Derives the salts."""
    usual_iterations: Callable[[ScramMechanism], int | None] = lambda _mechanism: None
    """The number of iterations that most users of a mechanism have; None without users."""


class _Challenge(NamedTuple):
    """The state between the two client messages."""

    credential: ScramCredential
    user_exists: bool
    header: bytes
    nonce: str
    signed: bytes
    """The messages so far, as both sides sign them."""


class ScramSaslServer:
    """One authentication attempt, with two tokens."""

    def __init__(
        self, mechanism: ScramMechanism, credentials: Credentials, decoys: Decoys, *, nonce: str
    ) -> None:
        """`nonce` is for this attempt only."""
        self._mechanism = mechanism
        self._credentials = credentials
        self._nonce = nonce
        self._decoys = decoys
        self._challenge: _Challenge | None = None
        self._finished = False
        self.claimed_user = ""

    def evaluate_response(self, token: bytes) -> SaslStep:
        if self._finished:
            raise self._failure()
        challenge = self._challenge
        self._finished = True  # Reset if this is the first step.
        return self._begin(token) if challenge is None else self._finish(token, challenge)

    def _begin(self, token: bytes) -> SaslStep:
        first = scram_messages.client_first(token)
        self.claimed_user = first.user
        if first.extensions.get(_DELEGATION_TOKEN, "").lower() == "true":
            raise AuthenticationError("delegation tokens are not supported; authenticate as a user")
        if first.authorization_id not in {"", first.user}:
            raise AuthenticationError(
                "Authentication failed: Client requested an authorization id that is different"
                " from username"
            )
        decoy = self._decoy(first.user)
        stored = self._credentials(first.user, self._mechanism)
        credential = stored or decoy
        nonce = first.nonce + self._nonce
        salt = scram_messages.encode_base64(credential.salt)
        message = f"r={nonce},s={salt},i={credential.iterations}".encode()
        self._challenge = _Challenge(
            credential=credential,
            user_exists=stored is not None,
            header=first.header,
            nonce=nonce,
            signed=first.bare + b"," + message,
        )
        self._finished = False
        return SaslStep(message)

    def _finish(self, token: bytes, challenge: _Challenge) -> SaslStep:
        final = scram_messages.client_final(token)
        credential = challenge.credential
        signed = challenge.signed + b"," + final.unproven
        signature = scram.signature(self._mechanism, credential.stored_key, signed)
        is_valid = (
            len(final.proof) == len(signature)
            and self._is_proof(final.proof, signature, credential)
            # The client's and ours; librdkafka before 2.6.1 repeats its own, and is still in use.
            and final.nonce.startswith(challenge.nonce.removesuffix(self._nonce))
            and final.nonce.endswith(self._nonce)
            and final.binding == challenge.header
        )
        if not (is_valid and challenge.user_exists):
            raise self._failure()
        verifier = scram.signature(self._mechanism, credential.server_key, signed)
        message = f"v={scram_messages.encode_base64(verifier)}".encode()
        return SaslStep(message, Principal(USER_PREFIX + credential.user))

    def _is_proof(self, proof: bytes, signature: bytes, credential: ScramCredential) -> bool:
        stored_key = scram.stored_key(self._mechanism, scram.xor(proof, signature))
        return hmac.compare_digest(stored_key, credential.stored_key)

    def _decoy(self, user: str) -> ScramCredential:
        """A credential for unknown users; computed for all users, so that timing is the same."""
        seed = scram.signature(self._mechanism, self._decoys.secret, user.encode())
        return ScramCredential(
            user=user,
            mechanism=self._mechanism,
            salt=scram.salt_of(int.from_bytes(seed)),
            iterations=self._decoys.usual_iterations(self._mechanism) or scram.ITERATIONS_DEFAULT,
            stored_key=scram.signature(self._mechanism, seed, b"Stored Key"),
            server_key=b"",
        )

    def _failure(self) -> AuthenticationError:
        return AuthenticationError(
            "Authentication failed during authentication due to invalid credentials with SASL"
            f" mechanism {self._mechanism.label}"
        )
