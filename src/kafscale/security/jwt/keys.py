"""The public keys of a JWKS (RFC 7517).

A key verifies only the algorithms of its type: RSA for RS and PS, each curve for its own hash,
Edwards curves for EdDSA. Symmetric keys, short RSA keys and encryption keys are ignored. Private
parts of published keys are never read.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWTError
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey | Ed448PublicKey

RSA_BIT_COUNT_MIN: Final = 2048
KEY_COUNT_MAX: Final = 1_000
CANDIDATE_COUNT_MAX: Final = 16
"""How many keys are tried for one token, to limit the cost of invalid tokens."""

ALGORITHMS: Final = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "P-256": ("ES256",),
    "P-384": ("ES384",),
    "P-521": ("ES512",),
    "Ed25519": ("EdDSA",),
    "Ed448": ("EdDSA",),
}
"""The algorithms of each key type or curve. Neither `none` nor HMAC is included."""

_READERS: Final[dict[str, Callable[[dict[str, Any]], object]]] = {
    "RSA": RSAAlgorithm.from_jwk,
    "EC": ECAlgorithm.from_jwk,
    "OKP": OKPAlgorithm.from_jwk,
}


class TokenKey(msgspec.Struct, frozen=True):
    """A public key and its algorithms."""

    key: PublicKey
    algorithms: tuple[str, ...]
    id: str | None = None


class _Jwks(msgspec.Struct):
    keys: list[msgspec.Raw]


class _Jwk(msgspec.Struct, omit_defaults=True):
    """The public fields of a JSON Web Key."""

    kty: str
    crv: str = ""
    n: str = ""
    e: str = ""
    x: str = ""
    y: str = ""
    alg: str = ""
    kid: str | None = None
    use: str = "sig"
    key_ops: list[str] | None = None


def parse_jwks(content: bytes) -> tuple[TokenKey, ...]:
    """Return the usable keys of a JWKS; raises `ValueError` if there are none."""
    try:
        raw_keys = msgspec.json.decode(content, type=_Jwks).keys
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ValueError("is not a JWKS") from None
    if len(raw_keys) > KEY_COUNT_MAX:
        raise ValueError(f"has more than {KEY_COUNT_MAX} keys")
    keys = tuple(key for key in map(_key, raw_keys) if key is not None)
    if not keys:
        raise ValueError("has no public key for verifying tokens")
    return keys


def matching_keys(keys: Iterable[TokenKey], key_id: str | None, algorithm: str) -> list[PublicKey]:
    """The keys that may have signed a token; without key ids, all with that algorithm."""
    matching = [
        key.key
        for key in keys
        if algorithm in key.algorithms and (None in {key_id, key.id} or key_id == key.id)
    ]
    return matching[:CANDIDATE_COUNT_MAX]


def _key(raw_key: msgspec.Raw) -> TokenKey | None:
    try:
        jwk = msgspec.json.decode(raw_key, type=_Jwk)
    except msgspec.MsgspecError:
        return None
    if jwk.use != "sig" or (jwk.key_ops is not None and "verify" not in jwk.key_ops):
        return None
    algorithms = ALGORITHMS.get("RSA" if jwk.kty == "RSA" else jwk.crv, ())
    if jwk.alg:
        algorithms = tuple(name for name in algorithms if name == jwk.alg)
    key = _public_key(jwk) if algorithms else None
    return TokenKey(key, algorithms, jwk.kid) if key is not None else None


def _public_key(jwk: _Jwk) -> PublicKey | None:
    read_key = _READERS.get(jwk.kty)
    if read_key is None:
        return None
    try:
        key = read_key(msgspec.to_builtins(jwk))
    except (PyJWTError, ValueError, TypeError, KeyError, UnsupportedAlgorithm):
        return None
    if isinstance(key, RSAPublicKey) and key.key_size < RSA_BIT_COUNT_MIN:
        return None
    assert isinstance(key, PublicKey)
    return key
