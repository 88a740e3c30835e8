"""`ScramSaslServer`: a server that recognizes a user by SCRAM (RFC 5802), as Kafka speaks it.

The laws:

* A user that does not exist is led through the same exchange, with a salt that stays the same for
  that name, and fails in the end with the sentence that a wrong password gets.
* Proofs are compared in constant time.
* Nobody speaks for somebody else: the authorization id is empty, or the user's own name.

There is no channel binding, and there are no delegation tokens: whoever asks for either is refused.
The arithmetic is in `scram`, the form of the messages in `scram_messages`.
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


class _Challenge(NamedTuple):
    """What the client has to answer to."""

    credential: ScramCredential
    is_real: bool
    header: bytes
    nonce: str
    signed: bytes
    """What was said so far, as both sides sign it."""


class ScramSaslServer:
    """One attempt; it takes two tokens."""

    def __init__(
        self, mechanism: ScramMechanism, credentials: Credentials, *, nonce: str, secret: bytes
    ) -> None:
        """`nonce` is for this attempt alone, `secret` makes the salts of those who do not exist."""
        self._mechanism = mechanism
        self._credentials = credentials
        self._nonce = nonce
        self._secret = secret
        self._challenge: _Challenge | None = None
        self._finished = False
        self.claimed_user = ""

    def evaluate_response(self, token: bytes) -> SaslStep:
        if self._finished:
            raise self._failure()
        challenge = self._challenge
        self._finished = True  # Unless this step proves to be the first.
        return self._begin(token) if challenge is None else self._finish(token, challenge)

    def _begin(self, token: bytes) -> SaslStep:
        first = scram_messages.client_first(token)
        self.claimed_user = first.user
        if first.extensions.get(_DELEGATION_TOKEN, "").lower() == "true":
            raise AuthenticationError("delegation tokens are not known here; log in as a user")
        if first.authorization_id not in {"", first.user}:
            raise AuthenticationError(
                "Authentication failed: Client requested an authorization id that is different"
                " from username"
            )
        decoy = self._decoy(first.user)
        found = self._credentials(first.user, self._mechanism)
        credential = found or decoy
        nonce = first.nonce + self._nonce
        salt = scram_messages.encode_base64(credential.salt)
        answer = f"r={nonce},s={salt},i={credential.iterations}".encode()
        self._challenge = _Challenge(
            credential=credential,
            is_real=found is not None,
            header=first.header,
            nonce=nonce,
            signed=first.bare + b"," + answer,
        )
        self._finished = False
        return SaslStep(answer)

    def _finish(self, token: bytes, challenge: _Challenge) -> SaslStep:
        final = scram_messages.client_final(token)
        credential = challenge.credential
        signed = challenge.signed + b"," + final.unproven
        signature = scram.signature(self._mechanism, credential.stored_key, signed)
        verify_password = (
            len(final.proof) == len(signature)
            and self._is_proof(final.proof, signature, credential)
            # Theirs and ours; librdkafka before 2.6.1 says its own twice, and many still use it.
            and final.nonce.startswith(challenge.nonce.removesuffix(self._nonce))
            and final.nonce.endswith(self._nonce)
            and final.binding == challenge.header
        )
        if not (verify_password and challenge.is_real):
            raise self._failure()
        verifier = scram.signature(self._mechanism, credential.server_key, signed)
        answer = f"v={scram_messages.encode_base64(verifier)}".encode()
        return SaslStep(answer, Principal(USER_PREFIX + credential.user))

    def _is_proof(self, proof: bytes, signature: bytes, credential: ScramCredential) -> bool:
        shown = scram.stored_key(self._mechanism, scram.xor(proof, signature))
        return hmac.compare_digest(shown, credential.stored_key)

    def _decoy(self, user: str) -> ScramCredential:
        """What a user could have that nobody has; made for all, so that it takes the same time."""
        seed = scram.signature(self._mechanism, self._secret, user.encode())
        return ScramCredential(
            user=user,
            mechanism=self._mechanism,
            salt=scram.salt_of(int.from_bytes(seed)),
            iterations=scram.ITERATIONS_DEFAULT,
            stored_key=scram.signature(self._mechanism, seed, b"Stored Key"),
            server_key=b"",
        )

    def _failure(self) -> AuthenticationError:
        return AuthenticationError(
            "Authentication failed during authentication due to invalid credentials with SASL"
            f" mechanism {self._mechanism.label}"
        )
