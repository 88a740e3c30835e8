"""OAUTHBEARER server: RFC 7628, with two-step failures as in Kafka."""

import asyncio

import msgspec
import pytest
from aiokafka.conn import OAuthAuthenticator
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import AuthenticationError
from kafscale.security.jwt.verifier import INSUFFICIENT_SCOPE, TokenError
from kafscale.security.principal import Principal
from kafscale.security.sasl.client import OAuthBearerSaslClient
from kafscale.security.sasl.oauthbearer import TOKEN_BYTES_MAX, OAuthBearerSaslServer

ALICE = Principal("User:alice")


def exchange():
    def verify(token):
        if token == "a.b.c":  # noqa: S105
            return ALICE
        if token == "no.scope.here":  # noqa: S105
            raise TokenError("the token does not have the required scopes", INSUFFICIENT_SCOPE)
        raise TokenError("the token has expired")

    return OAuthBearerSaslServer(verify)


@pytest.mark.parametrize(
    "message",
    [
        b"n,,\x01auth=Bearer a.b.c\x01\x01",
        b"n,,\x01auth=bearer   a.b.c\x01\x01",
        b"n,a=alice,\x01auth=Bearer a.b.c\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01traceId=12 3\x01logicalCluster=x\x01\x01",
        b"n,,\x01traceId=123\x01auth=Bearer a.b.c\x01\x01",
    ],
)
def test_valid_token_is_accepted(message):
    step = exchange().evaluate_response(message)
    assert (step.token, step.principal) == (b"", ALICE)


def test_own_client_is_accepted():
    assert (
        exchange().evaluate_response(OAuthBearerSaslClient("a.b.c").initial_response()).principal
        == ALICE
    )


def test_aiokafka_client_is_accepted():
    class Provider:
        async def token(self):
            return "a.b.c"

        def extensions(self):
            return {"traceId": "123"}

    client = OAuthAuthenticator(sasl_oauth_token_provider=Provider())
    message, _ = asyncio.run(client.step(b""))
    assert exchange().evaluate_response(message).principal == ALICE


@pytest.mark.parametrize(
    ("token", "status", "reason"),
    [
        ("x.y.z", "invalid_token", "the token has expired"),
        ("no.scope.here", "insufficient_scope", "the token does not have the required scopes"),
    ],
)
def test_rejected_token_is_explained_before_the_failure(token, status, reason):
    server, client = exchange(), OAuthBearerSaslClient(token)
    step = server.evaluate_response(client.initial_response())
    assert step.principal is None
    assert msgspec.json.decode(step.token) == {"status": status, "error_description": reason}
    assert client.evaluate_challenge(step.token) == b"\x01"
    with pytest.raises(AuthenticationError, match=f"Authentication failed: {reason}"):
        server.evaluate_response(b"\x01")


def test_second_token_is_rejected():
    server = exchange()
    server.evaluate_response(OAuthBearerSaslClient("x.y.z").initial_response())
    with pytest.raises(AuthenticationError, match="expired"):
        server.evaluate_response(OAuthBearerSaslClient("a.b.c").initial_response())


def test_other_authorization_id_is_rejected():
    with pytest.raises(AuthenticationError, match="authorization id"):
        exchange().evaluate_response(b"n,a=root,\x01auth=Bearer a.b.c\x01\x01")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01",
        b"n,,\x01auth=Bearer a.b.c\x01\x01\x01",
        b"n,,auth=Bearer a.b.c\x01\x01",
        b"y,,\x01auth=Bearer a.b.c\x01\x01",
        b"n,a=,\x01auth=Bearer a.b.c\x01\x01",
        b"n,,\x01auth=Basic a.b.c\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01other=Bearer a.b.c\x01\x01",
        b"n,,\x01auth=Bearer x.y.z\x01auth=Bearer a.b.c\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01trace=1\x01trace=2\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01empty=\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01trace1=x\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01trace=\xc3\xa4\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01trace=\xff\x01\x01",
        b"n,,\x01auth=Bearer " + b"x" * TOKEN_BYTES_MAX + b"\x01\x01",
    ],
)
def test_malformed_message_is_rejected(message):
    with pytest.raises(AuthenticationError, match="Invalid OAUTHBEARER client first message"):
        exchange().evaluate_response(message)


@given(st.binary(max_size=100))
def test_random_bytes_are_rejected(message):
    with pytest.raises(AuthenticationError):
        exchange().evaluate_response(message)
