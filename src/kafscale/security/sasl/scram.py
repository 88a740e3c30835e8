"""SCRAM's keys and proofs (RFC 5802, RFC 7677).

    salted password ──"Client Key"──▶ client key ──hash──▶ stored key ──message──▶ client signature
                    ──"Server Key"──▶ server key ──message──▶ server signature
    proof = client key XOR client signature

A server stores the stored key and the server key, which are not sufficient to authenticate.
Passwords are UTF-8 without normalization, as in Kafka's clients.
"""

import base64
import hashlib
import hmac
from random import Random
from typing import Final

from kafscale.errors import UnacceptableCredentialError
from kafscale.metadata.access.model import ScramCredential, ScramMechanism

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384
"""Kafka's bounds, for both mechanisms."""
ITERATIONS_DEFAULT: Final = 8_192
"""Used by Kafscale's own commands, and for unknown users."""

_NONCE_BYTES: Final = 24
_SALT_BIT_COUNT: Final = 130
_SALT_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


def credential(
    user: str,
    mechanism: ScramMechanism,
    salt: bytes,
    iterations: int,
    *,
    password: str | None = None,
    salted_password: bytes | None = None,
) -> ScramCredential:
    """Derive the credential of a user from the password or the salted password."""
    assert (password is None) != (salted_password is None), "exactly one of the two"
    if not user:
        raise UnacceptableCredentialError("Username must not be empty")
    if iterations < ITERATIONS_MIN:
        raise UnacceptableCredentialError("Too few iterations")
    if iterations > ITERATIONS_MAX:
        raise UnacceptableCredentialError("Too many iterations")
    if salted_password is None:
        assert password is not None
        salted_password = salt_password(password, mechanism, salt, iterations)
    return credential_from_salted(user, mechanism, salt, iterations, salted_password)


def credential_from_salted(
    user: str, mechanism: ScramMechanism, salt: bytes, iterations: int, salted_password: bytes
) -> ScramCredential:
    """Derive a credential without a check of Kafka's limits."""
    return ScramCredential(
        user=user,
        mechanism=mechanism,
        salt=salt,
        iterations=iterations,
        stored_key=stored_key(mechanism, client_key(mechanism, salted_password)),
        server_key=server_key(mechanism, salted_password),
    )


def new_nonce(random: Random) -> str:
    """A random nonce without commas, which separate fields of messages."""
    return base64.b64encode(random.randbytes(_NONCE_BYTES)).decode()


def new_salt(random: Random) -> bytes:
    """A random salt in the format of Kafka's tools."""
    return salt_of(random.getrandbits(_SALT_BIT_COUNT))


def salt_of(number: int) -> bytes:
    """Convert a number to a salt: its lowest 130 bits in base 36, as in Java."""
    number %= 1 << _SALT_BIT_COUNT
    digits = ""
    while number:
        number, digit = divmod(number, len(_SALT_DIGITS))
        digits = _SALT_DIGITS[digit] + digits
    return (digits or "0").encode()


def salt_password(password: str, mechanism: ScramMechanism, salt: bytes, iterations: int) -> bytes:
    """PBKDF2 of the password; slow by design."""
    return hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)


def client_key(mechanism: ScramMechanism, salted_password: bytes) -> bytes:
    return signature(mechanism, salted_password, b"Client Key")


def server_key(mechanism: ScramMechanism, salted_password: bytes) -> bytes:
    return signature(mechanism, salted_password, b"Server Key")


def stored_key(mechanism: ScramMechanism, key: bytes) -> bytes:
    return hashlib.new(mechanism.digest, key).digest()


def signature(mechanism: ScramMechanism, key: bytes, message: bytes) -> bytes:
    """The HMAC of a message."""
    return hmac.digest(key, message, mechanism.digest)


def xor(left: bytes, right: bytes) -> bytes:
    """Combine client key and client signature to the proof, or reverse it."""
    assert len(left) == len(right)
    mixed = int.from_bytes(left) ^ int.from_bytes(right)
    return mixed.to_bytes(len(left))
