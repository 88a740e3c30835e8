"""SCRAM server: RFC 7677's example, and other clients."""

import base64
from random import Random

import pytest
from aiokafka.conn import ScramAuthenticator
from hypothesis import given
from hypothesis import strategies as st
from kafka.net.sasl.scram import ScramClient

from kafscale.errors import AuthenticationError
from kafscale.metadata.access.model import ScramMechanism
from kafscale.security.principal import Principal
from kafscale.security.sasl import scram
from kafscale.security.sasl.client import ScramSaslClient
from kafscale.security.sasl.scram_authenticator import Decoys, ScramSaslServer

PASSWORD = "pencil"  # noqa: S105 - that of the RFC.
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
REFUSAL = "due to invalid credentials with SASL mechanism SCRAM-SHA-"

SHA_256 = ScramMechanism.SHA_256
CREDENTIALS = {
    (user, mechanism): scram.credential(user, mechanism, SALT, 4096, password=PASSWORD)
    for user in ("user", "a,b=c", "päivi")
    for mechanism in ScramMechanism
}


def exchange(
    mechanism=SHA_256, nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", secret=b"secret", iterations=None
):
    return ScramSaslServer(
        mechanism,
        lambda user, mechanism: CREDENTIALS.get((user, mechanism)),
        Decoys(secret, lambda _mechanism: iterations),
        nonce=nonce,
    )


def salt_of(server_first):
    return server_first.partition(b",s=")[2].partition(b",")[0]


def test_exchange_equals_rfc_7677():
    server = exchange()
    client = ScramSaslClient(SHA_256, "user", PASSWORD, "rOprNGfwEbeRWgbNEkqO")
    assert client.initial_response() == CLIENT_FIRST
    step = server.evaluate_response(CLIENT_FIRST)
    assert (step.token, step.principal) == (SERVER_FIRST, None)
    assert client.evaluate_challenge(SERVER_FIRST) == CLIENT_FINAL
    step = server.evaluate_response(CLIENT_FINAL)
    assert (step.token, step.principal) == (SERVER_FINAL, Principal("User:user"))
    assert client.evaluate_challenge(SERVER_FINAL) is None


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize("user", ["user", "a,b=c", "päivi"])
def test_own_client_is_accepted(mechanism, user):
    server = exchange(mechanism, scram.new_nonce(Random(1)))
    client = ScramSaslClient(mechanism, user, PASSWORD, scram.new_nonce(Random(2)))
    response = client.evaluate_challenge(server.evaluate_response(client.initial_response()).token)
    step = server.evaluate_response(response)
    assert step.principal == Principal(f"User:{user}")
    assert client.evaluate_challenge(step.token) is None


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize("user", ["user", "a,b=c"])
def test_aiokafka_client_is_accepted(mechanism, user):
    server = exchange(mechanism)
    client = ScramAuthenticator(
        loop=None,
        sasl_plain_username=user,
        sasl_plain_password=PASSWORD,
        sasl_mechanism=mechanism.label,
    )
    first = server.evaluate_response(client.first_message().encode())
    client.process_server_first_message(first.token.decode())
    step = server.evaluate_response(client.final_message().encode())
    client.process_server_final_message(step.token.decode())
    assert step.principal == Principal(f"User:{user}")


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize("password", [PASSWORD, "Pencil"])
def test_kafka_python_client_is_accepted_with_the_correct_password(mechanism, password):
    server = exchange(mechanism)
    client = ScramClient("user", password, mechanism.label)
    client.process_server_first_message(server.evaluate_response(client.first_message()).token)
    if password == PASSWORD:
        step = server.evaluate_response(client.final_message())
        client.process_server_final_message(step.token)
        assert step.principal == Principal("User:user")
    else:
        with pytest.raises(AuthenticationError, match=f"{REFUSAL}{mechanism.value * 256}"):
            server.evaluate_response(client.final_message())


def test_unknown_user_is_indistinguishable_from_a_wrong_password():
    refusals = []
    for user in ("user", "unknown"):
        server = exchange()
        client = ScramSaslClient(SHA_256, user, "guessed", "abc")
        first = server.evaluate_response(client.initial_response())
        assert first.principal is None
        with pytest.raises(AuthenticationError) as refusal:
            server.evaluate_response(client.evaluate_challenge(first.token))
        refusals.append(str(refusal.value))
    assert refusals[0] == refusals[1]


@pytest.mark.parametrize(
    ("usual", "shown"), [(4096, 4096), (None, scram.ITERATIONS_DEFAULT)], ids=["some", "no users"]
)
def test_unknown_users_have_the_iterations_of_most_users(usual, shown):
    requested = exchange(iterations=usual).evaluate_response(b"n,,n=unknown,r=x").token
    assert requested.endswith(b",i=%d" % shown)


def test_salt_of_an_unknown_user_is_constant():
    salts = {
        (user, secret): salt_of(
            exchange(secret=secret).evaluate_response(b"n,,n=%b,r=x" % user).token
        )
        for user in (b"unknown", b"neither")
        for secret in (b"one", b"two")
    }
    assert len(set(salts.values())) == 4
    again = exchange(nonce="other", secret=b"one").evaluate_response(b"n,,n=unknown,r=y").token
    assert salt_of(again) == salts[b"unknown", b"one"]


def test_unknown_user_is_rejected_even_with_a_valid_proof():
    server = exchange()
    client = ScramSaslClient(SHA_256, "unknown", PASSWORD, "abc")
    final = client.evaluate_challenge(server.evaluate_response(client.initial_response()).token)
    stand_in = server._challenge.credential
    lucky = scram.credential("unknown", SHA_256, stand_in.salt, 4096, password=PASSWORD)
    server._challenge = server._challenge._replace(credential=lucky)
    with pytest.raises(AuthenticationError, match=REFUSAL):
        server.evaluate_response(final)


def test_delegation_tokens_are_rejected_with_their_own_error():
    with pytest.raises(AuthenticationError, match="delegation tokens"):
        exchange().evaluate_response(CLIENT_FIRST + b",tokenauth=true")


def test_other_extensions_are_signed_and_ignored():
    server = exchange()
    client = ScramSaslClient(SHA_256, "user", PASSWORD, "abc")
    client._bare += b",future=1"
    final = client.evaluate_challenge(server.evaluate_response(client.initial_response()).token)
    assert server.evaluate_response(final).principal == Principal("User:user")


@pytest.mark.parametrize(("authorization_id", "is_right"), [("user", True), ("root", False)])
def test_other_authorization_id_is_rejected(authorization_id, is_right):
    server = exchange()
    first = b"n,a=%b,n=user,r=abc" % authorization_id.encode()
    if is_right:
        server.evaluate_response(first)
    else:
        with pytest.raises(AuthenticationError, match="authorization id"):
            server.evaluate_response(first)


@pytest.mark.parametrize(
    "final",
    [
        CLIENT_FINAL.replace(b"p=dHzb", b"p=dHzc"),
        CLIENT_FINAL.replace(b"dVQ=", b"dVQAAAA="),
        CLIENT_FINAL.partition(b"p=")[0] + b"p=AAAA",
    ],
)
def test_invalid_proof_is_rejected(final):
    server = exchange()
    server.evaluate_response(CLIENT_FIRST)
    with pytest.raises(AuthenticationError, match=REFUSAL):
        server.evaluate_response(final)


@pytest.mark.parametrize(
    ("before", "after", "is_right"),
    [
        (b"biws", b"biws", True),
        (b"biws", b"eSws", False),  # "y,,": a downgrade of the channel binding.
        (b"r=rOpr", b"r=rOps", False),
        (b"NlF$k0", b"NlF$k", False),
    ],
)
def test_proof_must_match_the_messages(before, after, is_right):
    """The proof matches its own message, but not the earlier ones."""
    server = exchange()
    server.evaluate_response(CLIENT_FIRST)
    unproven = CLIENT_FINAL.partition(b",p=")[0].replace(before, after)
    key = scram.client_key(SHA_256, scram.salt_password(PASSWORD, SHA_256, SALT, 4096))
    signed = CLIENT_FIRST.removeprefix(b"n,,") + b"," + SERVER_FIRST + b"," + unproven
    signature = scram.signature(SHA_256, scram.stored_key(SHA_256, key), signed)
    final = unproven + b",p=" + base64.b64encode(scram.xor(key, signature))
    if is_right:
        assert server.evaluate_response(final).principal
    else:
        with pytest.raises(AuthenticationError, match=REFUSAL):
            server.evaluate_response(final)


def test_attempt_ends_after_a_failure():
    server = exchange()
    server.evaluate_response(CLIENT_FIRST)
    for final in (CLIENT_FINAL.replace(b"p=dHzb", b"p=dHzc"), CLIENT_FINAL):
        with pytest.raises(AuthenticationError, match=REFUSAL):
            server.evaluate_response(final)


def test_attempt_ends_after_success():
    server = exchange()
    server.evaluate_response(CLIENT_FIRST)
    assert server.evaluate_response(CLIENT_FINAL).principal
    with pytest.raises(AuthenticationError, match=REFUSAL):
        server.evaluate_response(CLIENT_FINAL)


@given(st.lists(st.binary(max_size=100), min_size=1, max_size=3), st.booleans())
def test_random_bytes_are_rejected(tokens, begins_well):
    server = exchange()
    if begins_well:
        server.evaluate_response(CLIENT_FIRST)
    for token in tokens:
        with pytest.raises(AuthenticationError):
            server.evaluate_response(token)
