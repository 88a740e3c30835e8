"""SASL clients: initial responses, and verification of the server."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import AuthenticationError, UnsupportedMechanismError
from kafscale.metadata.access.model import ScramMechanism
from kafscale.security.sasl.client import (
    ITERATIONS_MAX,
    OAuthBearerSaslClient,
    PlainSaslClient,
    ScramSaslClient,
    create_client,
)


def scram_client():
    return ScramSaslClient(ScramMechanism.SHA_512, "user", "pencil", "nonce")


@pytest.mark.parametrize(
    ("mechanism", "begins"),
    [
        ("PLAIN", b"\0alice\0secret"),
        ("SCRAM-SHA-256", b"n,,n=alice,r="),
        ("SCRAM-SHA-512", b"n,,n=alice,r="),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer a.b.c\x01\x01"),
    ],
)
def test_initial_response_of_each_mechanism(mechanism, begins):
    created = create_client(mechanism, "alice", "secret", "a.b.c", Random(0))
    assert created.initial_response().startswith(begins)


def test_unknown_mechanism_is_rejected():
    with pytest.raises(UnsupportedMechanismError, match="GSSAPI"):
        create_client("GSSAPI", "alice", "secret", "", Random(0))


def test_plain_client_rejects_a_challenge():
    client = PlainSaslClient("alice", "secret")
    assert client.evaluate_challenge(b"") is None
    with pytest.raises(AuthenticationError):
        client.evaluate_challenge(b"more")


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        (b'{"status":"invalid_token","error_description":"it has expired"}', "it has expired"),
        (b'{"status":"invalid_token"}', "invalid_token"),
        (b"\xff", "no reason given"),
        (b"[]", "no reason given"),
    ],
)
def test_rejected_token_is_reported_after_the_acknowledgement(challenge, reason):
    client = OAuthBearerSaslClient("a.b.c")
    assert client.evaluate_challenge(challenge) == b"\x01"
    with pytest.raises(AuthenticationError, match=reason):
        client.evaluate_challenge(b"")


@pytest.mark.parametrize("iterations", [1, 4095, ITERATIONS_MAX + 1, 2**31])
def test_scram_client_limits_the_iterations(iterations):
    with pytest.raises(AuthenticationError, match="iterations"):
        scram_client().evaluate_challenge(f"r=nonce1,s=aaaa,i={iterations}".encode())


@pytest.mark.parametrize("nonce", ["other", "nonce", "nonc"])
def test_server_must_extend_the_nonce(nonce):
    with pytest.raises(AuthenticationError, match="nonce does not match"):
        scram_client().evaluate_challenge(f"r={nonce},s=aaaa,i=4096".encode())


@pytest.mark.parametrize("final", [b"v=aaaa", b"", b"e=other-error", b"v="])
def test_wrong_server_signature_is_rejected(final):
    client = scram_client()
    assert client.evaluate_challenge(b"r=nonce1,s=aaaa,i=4096").startswith(b"c=biws,r=nonce1,p=")
    with pytest.raises(AuthenticationError):
        client.evaluate_challenge(final)


@given(st.binary(max_size=100))
def test_random_challenge_is_rejected(challenge):
    with pytest.raises(AuthenticationError):
        scram_client().evaluate_challenge(challenge)


def test_representations_contain_no_secret():
    for client in (
        scram_client(),
        PlainSaslClient("alice", "pencil"),
        OAuthBearerSaslClient("pencil"),
    ):
        assert "pencil" not in repr(client)
