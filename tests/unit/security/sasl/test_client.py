"""A client shows who it is, and does not believe every server."""

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
def test_every_mechanism_begins_in_its_own_way(mechanism, begins):
    made = create_client(mechanism, "alice", "secret", "a.b.c", Random(0))
    assert made.initial_response().startswith(begins)


def test_other_mechanisms_are_not_known():
    with pytest.raises(UnsupportedMechanismError, match="GSSAPI"):
        create_client("GSSAPI", "alice", "secret", "", Random(0))


def test_plain_has_nothing_more_to_say():
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
def test_a_token_that_is_refused_is_told_about_once_the_server_has_heard_back(challenge, reason):
    client = OAuthBearerSaslClient("a.b.c")
    assert client.evaluate_challenge(challenge) == b"\x01"
    with pytest.raises(AuthenticationError, match=reason):
        client.evaluate_challenge(b"")


@pytest.mark.parametrize("iterations", [1, 4095, ITERATIONS_MAX + 1, 2**31])
def test_a_server_cannot_have_the_password_cheaply_nor_at_any_price(iterations):
    with pytest.raises(AuthenticationError, match="iterations"):
        scram_client().evaluate_challenge(f"r=nonce1,s=aaaa,i={iterations}".encode())


@pytest.mark.parametrize("nonce", ["other", "nonce", "nonc"])
def test_a_server_has_to_add_to_the_nonce(nonce):
    with pytest.raises(AuthenticationError, match="nonce does not match"):
        scram_client().evaluate_challenge(f"r={nonce},s=aaaa,i=4096".encode())


@pytest.mark.parametrize("final", [b"v=aaaa", b"", b"e=other-error", b"v="])
def test_a_server_that_does_not_know_the_password_is_not_believed(final):
    client = scram_client()
    assert client.evaluate_challenge(b"r=nonce1,s=aaaa,i=4096").startswith(b"c=biws,r=nonce1,p=")
    with pytest.raises(AuthenticationError):
        client.evaluate_challenge(final)


@given(st.binary(max_size=100))
def test_garbage_of_a_server_is_refused(challenge):
    with pytest.raises(AuthenticationError):
        scram_client().evaluate_challenge(challenge)


def test_no_secret_shows():
    for client in (
        scram_client(),
        PlainSaslClient("alice", "pencil"),
        OAuthBearerSaslClient("pencil"),
    ):
        assert "pencil" not in repr(client)
