"""A client that shows who it is to a server which goes by the mechanisms of a broker."""

import asyncio
import json

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from kafscale.client.client import Client
from kafscale.client.connection import Connection
from kafscale.client.errors import UnreachableError
from kafscale.client.security import PLAINTEXT, Security
from kafscale.config.sections.security import MECHANISMS, Sasl
from kafscale.errors import AuthenticationError, ConfigError, UnsupportedMechanismError
from kafscale.metadata.access.model import ScramMechanism
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest
from kafscale.security.sasl import scram
from unit.client.gatekeeper import NOW_MS, Gatekeeper

PASSWORD = "=open=sesame="  # noqa: S105
CREDENTIALS = {
    kind: scram.credential("alice", kind, b"salt", 4096, password=PASSWORD)
    for kind in ScramMechanism
}
FIRST = ["ApiVersions", "SaslHandshake", "SaslAuthenticate"]


@pytest.fixture(scope="module")
def key():
    return ec.generate_private_key(ec.SECP256R1())


@pytest.fixture
def sasl(tmp_path, key):
    """All mechanisms, with alice as their one user."""
    keys = tmp_path / "keys.json"
    public = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    keys.write_text(json.dumps({"keys": [public | {"kid": "1", "alg": "ES256"}]}))
    return Sasl(
        enabled_mechanisms=MECHANISMS, plain_users=f"alice:{PASSWORD}", oauth_jwks_file=str(keys)
    )


@pytest.fixture
def alice(tmp_path, key):
    """How alice logs in by a mechanism."""

    def by(mechanism, password=PASSWORD, *, token_ends_s=60):
        claims = {"sub": "alice", "exp": NOW_MS // 1000 + token_ends_s}
        file = tmp_path / "token"
        file.write_text(jwt.encode(claims, key, "ES256", {"kid": "1"}) + "\n")
        return Security(
            protocol="SASL_PLAINTEXT",
            mechanism=mechanism,
            username="alice",
            password=password,
            token_file=str(file),
        )

    return by


def credential(user, mechanism):
    return CREDENTIALS[mechanism] if user == "alice" else None


async def ask(connection):
    return (await connection.ask(METADATA, MetadataRequest())).cluster_id


def opened(gatekeeper, security):
    """What the server was asked, when somebody has come in and asked something."""

    async def story():
        async with gatekeeper:
            connection = await Connection.open(gatekeeper.address, security)
            assert await ask(connection) == "it"
            await connection.end()
            assert connection.has_ended

    asyncio.run(story())
    return gatekeeper.asked


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_who_shows_who_they_are_is_let_in(sasl, alice, mechanism):
    steps = 2 if mechanism.startswith("SCRAM") else 1
    asked = opened(Gatekeeper(sasl, credentials=credential), alice(mechanism))
    assert asked == [*FIRST[:2], *["SaslAuthenticate"] * steps, "Metadata"]


@pytest.mark.parametrize("mechanism", [each for each in MECHANISMS if each != "OAUTHBEARER"])
def test_a_wrong_password_is_told_without_showing_it(sasl, alice, mechanism):
    with pytest.raises(
        AuthenticationError, match=r"does not let alice in: .*client\.username"
    ) as e:
        opened(Gatekeeper(sasl, credentials=credential), alice(mechanism, "guessed"))
    assert "guessed" not in str(e.value)


def test_a_token_that_has_ended_is_told(sasl, alice):
    with pytest.raises(AuthenticationError, match=r"does not let .*client\.tokenFile"):
        opened(Gatekeeper(sasl), alice("OAUTHBEARER", token_ends_s=-100))


def test_a_mechanism_that_is_not_offered_is_told_with_those_that_are(alice):
    sasl = Sasl(enabled_mechanisms=("PLAIN",), plain_users="alice:x")
    with pytest.raises(
        UnsupportedMechanismError, match=r"does not offer SCRAM-SHA-256, but PLAIN;"
    ):
        opened(Gatekeeper(sasl), alice("SCRAM-SHA-256"))


@pytest.mark.parametrize("code", [33, 34], ids=["ours", "Kafka's"])
def test_where_nobody_logs_in_it_is_told_what_to_set(alice, code):
    with pytest.raises(UnsupportedMechanismError, match=r"nobody log in .* to PLAINTEXT"):
        opened(Gatekeeper(handshake_code=code), alice("PLAIN"))


def test_who_does_not_log_in_where_one_has_to_is_told(sasl):
    with pytest.raises(UnreachableError, match=r"if one has to log in there, .*SASL_PLAINTEXT"):
        opened(Gatekeeper(sasl), PLAINTEXT)


def test_a_server_that_does_not_know_the_user_is_not_believed(sasl, alice):
    """Anybody could claim to have let us in; with SCRAM it takes what only the right one has."""

    class Impostor(Gatekeeper):
        def _step(self, exchange, token):
            answer, is_in = super()._step(exchange, token)
            return type(answer)(token=b"v=" + b"AAAA" if is_in else answer.token), is_in

    with pytest.raises(AuthenticationError, match="is not to be trusted"):
        opened(Impostor(sasl, credentials=credential), alice("SCRAM-SHA-256"))


@pytest.mark.parametrize("session_ms", [0, 3_600_000], ids=["without end", "an hour"])
def test_within_a_session_nobody_logs_in_again(sasl, alice, session_ms):
    gatekeeper = Gatekeeper(sasl, session_ms=session_ms)
    assert opened(gatekeeper, alice("PLAIN")) == [*FIRST, "Metadata"]


def test_before_a_session_ends_one_logs_in_again_and_all_others_wait(sasl, alice):
    """KIP-368: on the same connection, between two requests, and with the next session as well."""
    gatekeeper = Gatekeeper(sasl, credentials=credential, session_ms=1)

    async def until_due():
        loop = asyncio.get_running_loop()
        due = loop.time() + gatekeeper.session_ms / 1000
        while loop.time() < due:  # noqa: ASYNC110 - a millisecond has to pass.
            await asyncio.sleep(0)

    async def story():
        async with gatekeeper:
            connection = await Connection.open(gatekeeper.address, alice("SCRAM-SHA-256"))
            gatekeeper.asked.clear()
            await until_due()
            gatekeeper.session_ms = 3_600_000
            assert await asyncio.gather(*(ask(connection) for _ in range(3))) == ["it"] * 3
            await connection.end()

    asyncio.run(story())
    login = ["SaslHandshake", "SaslAuthenticate", "SaslAuthenticate"]
    assert gatekeeper.asked == [*login, *["Metadata"] * 3]


def test_who_is_not_let_in_again_is_told_and_the_connection_is_over(sasl, alice):
    gatekeeper = Gatekeeper(sasl, session_ms=1)

    async def story():
        async with gatekeeper:
            connection = await Connection.open(gatekeeper.address, alice("OAUTHBEARER"))
            alice("OAUTHBEARER", token_ends_s=-100)  # The file has another token by now.
            with pytest.raises(AuthenticationError, match="does not let"):
                await asyncio.gather(*(ask(connection) for _ in range(1000)))
            assert not connection.is_open

    asyncio.run(story())


def test_a_client_logs_in_to_all_brokers_in_the_same_way(sasl, alice):
    gatekeeper = Gatekeeper(sasl)

    async def story():
        async with gatekeeper, Client([gatekeeper.address], alice("PLAIN")) as client:
            assert await ask(await client.any_broker()) == "it"
            own = await client.connect(gatekeeper.address)
            assert own is not await client.any_broker()
            assert await ask(own) == "it"
        assert own.has_ended

    asyncio.run(story())
    assert gatekeeper.asked == [*FIRST, "Metadata"] * 2


def test_a_token_that_cannot_be_read_is_told_with_its_setting(sasl, tmp_path):
    security = Security(
        protocol="SASL_PLAINTEXT", mechanism="OAUTHBEARER", token_file=str(tmp_path / "absent")
    )
    with pytest.raises(ConfigError, match=r"client\.tokenFile cannot be read"):
        opened(Gatekeeper(sasl), security)
