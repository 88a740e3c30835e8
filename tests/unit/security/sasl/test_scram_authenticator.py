"""A server speaks SCRAM as RFC 7677 writes it down, and as the clients of others do."""

import base64
from random import Random

import pytest
from aiokafka.conn import ScramAuthenticator
from hypothesis import given
from hypothesis import strategies as st
from kafka.net.sasl.scram import ScramClient

from kafscale.errors import AuthenticationError
from kafscale.metadata.access.model import ScramMechanism
from kafscale.security.principal import Identity
from kafscale.security.sasl import scram
from kafscale.security.sasl.client import ScramInitiation
from kafscale.security.sasl.scram_authenticator import ScramExchange

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


def exchange(mechanism=SHA_256, nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", secret=b"secret"):
    return ScramExchange(
        mechanism,
        lambda user, mechanism: CREDENTIALS.get((user, mechanism)),
        nonce=nonce,
        secret=secret,
    )


def salt_of(server_first):
    return server_first.partition(b",s=")[2].partition(b",")[0]


def test_the_conversation_is_that_of_rfc_7677():
    server = exchange()
    client = ScramInitiation(SHA_256, "user", PASSWORD, "rOprNGfwEbeRWgbNEkqO")
    assert client.first() == CLIENT_FIRST
    step = server.step(CLIENT_FIRST)
    assert (step.token, step.identity) == (SERVER_FIRST, None)
    assert client.next(SERVER_FIRST) == CLIENT_FINAL
    step = server.step(CLIENT_FINAL)
    assert (step.token, step.identity) == (SERVER_FINAL, Identity("User:user"))
    assert client.next(SERVER_FINAL) is None


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize("user", ["user", "a,b=c", "päivi"])
def test_a_client_of_ours_gets_in(mechanism, user):
    server = exchange(mechanism, scram.new_nonce(Random(1)))
    client = ScramInitiation(mechanism, user, PASSWORD, scram.new_nonce(Random(2)))
    answer = client.next(server.step(client.first()).token)
    step = server.step(answer)
    assert step.identity == Identity(f"User:{user}")
    assert client.next(step.token) is None


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize("user", ["user", "a,b=c"])
def test_a_client_of_aiokafka_gets_in(mechanism, user):
    server = exchange(mechanism)
    client = ScramAuthenticator(
        loop=None,
        sasl_plain_username=user,
        sasl_plain_password=PASSWORD,
        sasl_mechanism=mechanism.label,
    )
    first = server.step(client.first_message().encode())
    client.process_server_first_message(first.token.decode())
    step = server.step(client.final_message().encode())
    client.process_server_final_message(step.token.decode())
    assert step.identity == Identity(f"User:{user}")


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize("password", [PASSWORD, "Pencil"])
def test_a_client_of_kafka_python_gets_in_with_the_right_password(mechanism, password):
    server = exchange(mechanism)
    client = ScramClient("user", password, mechanism.label)
    client.process_server_first_message(server.step(client.first_message()).token)
    if password == PASSWORD:
        step = server.step(client.final_message())
        client.process_server_final_message(step.token)
        assert step.identity == Identity("User:user")
    else:
        with pytest.raises(AuthenticationError, match=f"{REFUSAL}{mechanism.value * 256}"):
            server.step(client.final_message())


def test_a_user_who_does_not_exist_cannot_be_told_from_one_with_another_password():
    refusals = []
    for user in ("user", "nobody"):
        server = exchange()
        client = ScramInitiation(SHA_256, user, "guessed", "abc")
        first = server.step(client.first())
        assert first.identity is None
        with pytest.raises(AuthenticationError) as refusal:
            server.step(client.next(first.token))
        refusals.append(str(refusal.value))
    assert refusals[0] == refusals[1]


def test_a_user_who_does_not_exist_seems_to_have_been_made_by_our_commands():
    asked = exchange().step(b"n,,n=nobody,r=x").token
    assert asked.endswith(b",i=%d" % scram.ITERATIONS_DEFAULT)


def test_the_salt_of_a_user_who_does_not_exist_stays_the_same():
    salts = {
        (user, secret): salt_of(exchange(secret=secret).step(b"n,,n=%b,r=x" % user).token)
        for user in (b"nobody", b"neither")
        for secret in (b"one", b"two")
    }
    assert len(set(salts.values())) == 4
    again = exchange(nonce="other", secret=b"one").step(b"n,,n=nobody,r=y").token
    assert salt_of(again) == salts[b"nobody", b"one"]


def test_who_does_not_exist_is_refused_even_with_a_proof_that_is_right():
    server = exchange()
    client = ScramInitiation(SHA_256, "nobody", PASSWORD, "abc")
    final = client.next(server.step(client.first()).token)
    stand_in = server._challenge.credential
    lucky = scram.credential("nobody", SHA_256, stand_in.salt, 4096, password=PASSWORD)
    server._challenge = server._challenge._replace(credential=lucky)
    with pytest.raises(AuthenticationError, match=REFUSAL):
        server.step(final)


def test_delegation_tokens_are_refused_with_words_of_their_own():
    with pytest.raises(AuthenticationError, match="delegation tokens"):
        exchange().step(CLIENT_FIRST + b",tokenauth=true")


def test_other_extensions_are_signed_and_mean_nothing():
    server = exchange()
    client = ScramInitiation(SHA_256, "user", PASSWORD, "abc")
    client._bare += b",future=1"
    final = client.next(server.step(client.first()).token)
    assert server.step(final).identity == Identity("User:user")


@pytest.mark.parametrize(("authorization_id", "is_right"), [("user", True), ("root", False)])
def test_nobody_speaks_for_somebody_else(authorization_id, is_right):
    server = exchange()
    first = b"n,a=%b,n=user,r=abc" % authorization_id.encode()
    if is_right:
        server.step(first)
    else:
        with pytest.raises(AuthenticationError, match="authorization id"):
            server.step(first)


@pytest.mark.parametrize(
    "final",
    [
        CLIENT_FINAL.replace(b"p=dHzb", b"p=dHzc"),
        CLIENT_FINAL.replace(b"dVQ=", b"dVQAAAA="),
        CLIENT_FINAL.partition(b"p=")[0] + b"p=AAAA",
    ],
)
def test_a_proof_that_is_not_right_is_refused(final):
    server = exchange()
    server.step(CLIENT_FIRST)
    with pytest.raises(AuthenticationError, match=REFUSAL):
        server.step(final)


@pytest.mark.parametrize(
    ("before", "after", "is_right"),
    [
        (b"biws", b"biws", True),
        (b"biws", b"eSws", False),  # "y,,": that there is no channel binding was somebody's doing.
        (b"r=rOpr", b"r=rOps", False),
        (b"NlF$k0", b"NlF$k", False),
    ],
)
def test_a_proof_is_for_what_was_said_before(before, after, is_right):
    """The proof fits what it comes with; that does not fit the rest."""
    server = exchange()
    server.step(CLIENT_FIRST)
    unproven = CLIENT_FINAL.partition(b",p=")[0].replace(before, after)
    key = scram.client_key(SHA_256, scram.salted(PASSWORD, SHA_256, SALT, 4096))
    signed = CLIENT_FIRST.removeprefix(b"n,,") + b"," + SERVER_FIRST + b"," + unproven
    signature = scram.signature(SHA_256, scram.stored_key(SHA_256, key), signed)
    final = unproven + b",p=" + base64.b64encode(scram.xor(key, signature))
    if is_right:
        assert server.step(final).identity
    else:
        with pytest.raises(AuthenticationError, match=REFUSAL):
            server.step(final)


def test_an_attempt_is_over_after_one_failure():
    server = exchange()
    server.step(CLIENT_FIRST)
    for final in (CLIENT_FINAL.replace(b"p=dHzb", b"p=dHzc"), CLIENT_FINAL):
        with pytest.raises(AuthenticationError, match=REFUSAL):
            server.step(final)


def test_an_attempt_is_over_when_it_has_succeeded():
    server = exchange()
    server.step(CLIENT_FIRST)
    assert server.step(CLIENT_FINAL).identity
    with pytest.raises(AuthenticationError, match=REFUSAL):
        server.step(CLIENT_FINAL)


@given(st.lists(st.binary(max_size=100), min_size=1, max_size=3), st.booleans())
def test_garbage_gets_nobody_in(tokens, begins_well):
    server = exchange()
    if begins_well:
        server.step(CLIENT_FIRST)
    for token in tokens:
        with pytest.raises(AuthenticationError):
            server.step(token)
