"""A token issuer for tests: keys of every type, their JWKS, and JWTs."""

import functools
import json

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

NOW_MS = 1_750_000_000_000
NOW_S = NOW_MS // 1000

MAKERS = {
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
    "short RSA": lambda: rsa.generate_private_key(65537, 1024),  # noqa: S505 - to be refused.
    "P-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "P-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "P-521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "secp256k1": lambda: ec.generate_private_key(ec.SECP256K1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
    "Ed448": ed448.Ed448PrivateKey.generate,
}


@functools.cache
def private_key(kind, name=""):
    """A key of that kind; another one for another name."""
    del name
    return MAKERS[kind]()


def jwk(key, **members):
    """The public part of a key as a JWKS lists it."""
    public = key.public_key()
    if isinstance(public, rsa.RSAPublicKey):
        listed = RSAAlgorithm.to_jwk(public, as_dict=True)
    elif isinstance(public, ec.EllipticCurvePublicKey):
        listed = ECAlgorithm.to_jwk(public, as_dict=True)
    else:
        listed = OKPAlgorithm.to_jwk(public, as_dict=True)
    return {name: value for name, value in listed.items() if name != "key_ops"} | members


def jwks(*keys):
    return json.dumps({"keys": keys}).encode()


def token(key, algorithm, *, headers=None, **claims):
    """A token for alice that holds for an hour, but for the claims that are named; None drops."""
    stated = {"sub": "alice", "exp": NOW_S + 3600, "iat": NOW_S} | claims
    kept = {name: value for name, value in stated.items() if value is not None}
    return jwt.encode(kept, key, algorithm, headers=headers)
