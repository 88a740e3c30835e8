"""SCRAM keys (RFC 7677) within Kafka's limits."""

import base64
from random import Random

import pytest

from kafscale.errors import UnacceptableCredentialError
from kafscale.metadata.access.model import ScramMechanism
from kafscale.security.sasl import scram

PASSWORD = "pencil"  # noqa: S105 - that of the RFC.
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SIGNED = b",".join(
    (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO",
        b"r=" + NONCE + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        b"c=biws,r=" + NONCE,
    )
)
PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
VERIFIER = "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
SHA_256 = ScramMechanism.SHA_256


def test_keys_equal_rfc_7677():
    """The RFC shows what is made with them: a proof and a signature of the same message."""
    created = scram.credential("user", SHA_256, SALT, 4096, password=PASSWORD)
    signature = scram.signature(SHA_256, created.stored_key, SIGNED)
    client_key = scram.xor(base64.b64decode(PROOF), signature)
    assert scram.stored_key(SHA_256, client_key) == created.stored_key
    assert scram.signature(SHA_256, created.server_key, SIGNED) == base64.b64decode(VERIFIER)


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_credential_from_salted_password_is_equal(mechanism):
    salted = scram.salt_password(PASSWORD, mechanism, SALT, 4096)
    from_password = scram.credential("user", mechanism, SALT, 4096, password=PASSWORD)
    assert from_password == scram.credential("user", mechanism, SALT, 4096, salted_password=salted)
    assert from_password == scram.credential_from_salted("user", mechanism, SALT, 4096, salted)
    assert salted not in (from_password.stored_key, from_password.server_key)


@pytest.mark.parametrize(
    ("user", "iterations", "reason"),
    [
        ("", 4096, "Username must not be empty"),
        ("user", 4095, "Too few iterations"),
        ("user", 16385, "Too many iterations"),
    ],
)
def test_credential_limits_are_those_of_kafka(user, iterations, reason):
    with pytest.raises(UnacceptableCredentialError, match=reason):
        scram.credential(user, SHA_256, SALT, iterations, password=PASSWORD)


def test_salt_has_the_format_of_kafka():
    random = Random(0)
    salts = [scram.new_salt(random) for _ in range(1000)]
    assert len(set(salts)) == 1000
    assert {len(salt) for salt in salts} <= {22, 23, 24, 25, 26}
    assert all(int(salt, 36) < 2**130 for salt in salts)
    assert scram.salt_of(0) == b"0"
    assert int(scram.salt_of(2**130 + 35), 36) == 35


def test_nonce_has_no_commas():
    random = Random(0)
    nonces = {scram.new_nonce(random) for _ in range(1000)}
    assert len(nonces) == 1000
    assert not any("," in nonce for nonce in nonces)
