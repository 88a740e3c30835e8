"""PLAIN server."""

import pytest
from aiokafka.conn import SaslPlainAuthenticator
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import AuthenticationError
from kafscale.security.principal import Principal
from kafscale.security.sasl.client import PlainSaslClient
from kafscale.security.sasl.plain import TOKEN_BYTES_MAX, PlainSaslServer

USERS = {"alice": "secret", "päivi": "salasana: ä"}


def exchange():
    return PlainSaslServer(lambda user, password: USERS.get(user) == password)


@pytest.mark.parametrize("user", USERS)
def test_correct_password_is_accepted(user):
    client = PlainSaslClient(user, USERS[user])
    step = exchange().evaluate_response(client.initial_response())
    assert (step.token, step.principal) == (b"", Principal(f"User:{user}"))


def test_aiokafka_client_is_accepted():
    client = SaslPlainAuthenticator(
        loop=None, sasl_plain_username="alice", sasl_plain_password=USERS["alice"]
    )
    token, _ = next(client.authenticator_plain())
    assert exchange().evaluate_response(token).principal == Principal("User:alice")


def test_unknown_user_and_wrong_password_give_the_same_error():
    refusals = set()
    for token in (b"\0alice\0guessed", b"\0bob\0secret"):
        with pytest.raises(AuthenticationError) as refusal:
            exchange().evaluate_response(token)
        refusals.add(str(refusal.value))
    assert refusals == {"Authentication failed: Invalid username or password"}


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (b"root\0alice\0secret", "authorization id"),
        (b"\0\0secret", "username not specified"),
        (b"\0alice\0", "password not specified"),
        (b"alice\0secret", "expected"),
        (b"\0alice\0secret\0", "expected"),
        (b"\0alice\0\xff", "expected"),
        (b"\0alice\0" + b"x" * TOKEN_BYTES_MAX, "expected"),
    ],
)
def test_malformed_token_is_rejected(token, reason):
    with pytest.raises(AuthenticationError, match=reason):
        exchange().evaluate_response(token)


def test_other_authorization_id_does_not_reveal_the_password():
    with pytest.raises(AuthenticationError, match="Invalid username or password"):
        exchange().evaluate_response(b"root\0alice\0guessed")


@given(st.binary(max_size=100))
def test_random_bytes_are_rejected(token):
    with pytest.raises(AuthenticationError):
        exchange().evaluate_response(token)
